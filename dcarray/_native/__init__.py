"""The optional C extension: the short ways of small arrays and of deferred sequences, in C.
`dcarray.core.native` says whether it was built.
"""
