"""Arrays on devices: their classes, their elements in buffers, and the executor of recordings on them."""
