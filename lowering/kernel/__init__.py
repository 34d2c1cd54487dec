"""The kernel IR: loop nests over typed pointers and integers, ready for any target."""
