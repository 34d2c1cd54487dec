"""Plans: made from requests in this process or another one, and kept on disk."""
