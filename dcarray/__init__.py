"""dcarray: ordinary NumPy code, recorded, fused and compiled."""
