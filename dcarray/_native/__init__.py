"""The optional C extension: the short ways of small arrays, in C.
`dcarray.core.native` says whether it was built.
"""
