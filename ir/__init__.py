"""The region IR: what was recorded, and what may be done to it.

``nodes`` is the language, ``ops`` its vocabulary, ``interp`` its meaning; ``passes`` rewrites it.
"""

if __name__ != "dcarray.ir":
    raise ImportError("this folder is the package 'dcarray.ir': import it by that name")
