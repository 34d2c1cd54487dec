"""What users call: the array, its methods and operators, NumPy's protocols and functions."""
