"""The optional C extension: short ways for calls on small arrays; `dcarray.core.native` says if it was
built."""
