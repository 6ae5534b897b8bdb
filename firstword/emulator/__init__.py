"""SageMaker's bidirectional streaming on this machine, for a container and clients under test.

`server.Emulator` is the whole of it; `firstword emulate-sagemaker` is the same for a shell. What is
true to AWS, what nobody outside it knows, and every switch: docs/EMULATOR.md.
"""
