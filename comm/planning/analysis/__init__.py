"""Facts about statements over ranks: where their points are computed, which halos are valid, normal forms."""
