"""The source of functions: verified text, eligible loops, and the names that statements read and bind."""
