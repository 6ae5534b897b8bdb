// The line to the agent: one WebSocket after the other, each going on where the last one broke off.
//
// The id of the last event that is here whole is the place to go on from; for audio it is the id of
// the `at` in front of a binary frame, once that frame has come too.

const RETRY_MS = [250, 500, 1000, 2000, 5000];

export class Line {
  // Called back: onopen(), onclose(), onevent(event), onaudio(place, bytes), onrefused(status).
  constructor() {
    this.onopen = this.onclose = this.onevent = this.onaudio = this.onrefused = () => {};
    this.token = "";
    this.socket = null;
    this.failures = 0;
    this.retry = 0;
    this.forget();
  }

  get open() {
    return this.socket?.readyState === WebSocket.OPEN && this.session !== "";
  }

  // Nothing to go on from: the next connection is a new session.
  forget() {
    this.session = this.name = this.from = "";
    this.place = null; // of the binary frame that comes next
  }

  connect() {
    clearTimeout(this.retry);
    const socket = new WebSocket(this.#address(), this.#protocols());
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => {
      if (socket === this.socket) this.#take(data);
    };
    socket.onclose = () => {
      if (socket === this.socket) this.#lost();
    };
    this.socket = socket;
  }

  // The network came back: a socket of before may look open for minutes and carry nothing. It is
  // left, not closed, since who closes has hung up.
  refresh() {
    if (this.socket?.readyState === WebSocket.CONNECTING) this.socket.close();
    this.onclose();
    this.connect();
  }

  send(message) {
    if (this.open) this.socket.send(JSON.stringify(message));
  }

  #address() {
    const url = new URL("ws", location.href);
    url.protocol = url.protocol.replace("http", "ws");
    if (this.session) {
      url.searchParams.set("session", this.session);
      if (this.name) url.searchParams.set("line", this.name);
      if (this.from) url.searchParams.set("from", this.from);
    }
    return url;
  }

  // A browser can send no header here, so the token is one of the offered subprotocols.
  #protocols() {
    return this.token ? ["firstword", `firstword.bearer.${this.token}`] : [];
  }

  #take(data) {
    if (typeof data !== "string") {
      const place = this.place;
      this.place = null;
      if (!place) return;
      this.onaudio(place, new Uint8Array(data));
      if (place.id) this.from = place.id;
      return;
    }
    const event = JSON.parse(data);
    if (event.type === "at") {
      this.place = event;
    } else if (event.type === "session") {
      this.failures = 0;
      this.session = event.session;
      this.name = event.line ?? "";
      this.onopen();
    } else {
      if (event.id) this.from = event.id;
      const lost = event.code === "state_lost" && event.turn === undefined;
      if (lost || event.type === "closed") this.forget();
      this.onevent(event);
    }
  }

  async #lost() {
    this.place = null;
    this.socket = null;
    this.onclose();
    const wait = RETRY_MS[Math.min(this.failures++, RETRY_MS.length - 1)];
    this.retry = setTimeout(() => this.connect(), wait);
    if (this.failures < 2) return;
    // A refused WebSocket tells a page nothing; a request beside it does.
    const status = await this.ask("v1/voices").then((answer) => answer.status, () => 0);
    if (status === 401 || status === 429) {
      clearTimeout(this.retry);
      this.onrefused(status);
      if (status === 429) this.retry = setTimeout(() => this.connect(), RETRY_MS.at(-1));
    }
  }

  // A request with the token, if there is one.
  ask(path) {
    const headers = this.token ? { Authorization: `Bearer ${this.token}` } : {};
    return fetch(path, { headers });
  }
}
