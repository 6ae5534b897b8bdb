// Something to say, and something to ask where a model answers. Of what is said, the first is short, the last long enough to hear the difference of the modes.

export const PASSAGES = [
  {
    title: "A short answer",
    text: "Your parcel left the warehouse this morning. It should reach you on Thursday before noon.",
  },
  {
    title: "Directions",
    text:
      "Leave the station by the north exit and cross the square. The museum is the brick building " +
      "behind the fountain, about four minutes on foot. Tickets are cheaper after five, and the " +
      "café on the roof stays open until nine. If it rains, take the arcade on your left.",
  },
  {
    title: "Numbers and names",
    text:
      "Dr. Okafor can see you at 9:30 a.m. on March 3rd, in room 12.4. The visit costs $45.50, of " +
      "which your plan covers 80 %. Questions? Write to the desk, e.g. by e-mail.",
  },
  {
    title: "A longer story",
    text:
      "The lighthouse had been dark for eleven years when the letter arrived. It was addressed to " +
      "the keeper, a man nobody in the village could remember. Ines read it twice at the kitchen " +
      "table. Then she put on her coat and took the path along the cliff. The door was not locked. " +
      "Inside, the stairs smelled of salt and old paper. She climbed slowly, counting, and stopped " +
      "at one hundred and four. The lamp stood there, clean, as if someone had polished it that " +
      "morning. Below her the sea went on with its work. She turned the switch, and the night " +
      "answered.",
  },
];

export const QUESTIONS = [
  { title: "A short answer", text: "In one sentence: why is the sky blue?" },
  {
    title: "Directions",
    text: "Explain to somebody who has never done it how to boil an egg, in four or five sentences.",
  },
  { title: "Numbers and names", text: "Tell me what happened in July 1969, with dates and names." },
  { title: "A longer story", text: "Tell me a story about a lighthouse, in about ten sentences." },
];
