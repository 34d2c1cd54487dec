"""Process networks for HLS, and how they are made from regions."""
