"""The inference service."""

import os

# What torch and its libraries read when they are imported, and spaCy imports torch wherever it is
# installed: so this stands before all modules of the service.
#
# torch and oneDNN keep the code that they make for each shape of input, and every sentence has a
# shape of its own: without a bound a process grows by 16 MB a sentence.
os.environ.setdefault("LRU_CACHE_CAPACITY", "4")
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "4")
# Idle threads that spin would take the cores from the services beside us.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# Which of several ways to add numbers up cuBLAS takes depends on its workspace; this one repeats.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
