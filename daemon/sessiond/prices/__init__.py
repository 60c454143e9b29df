"""What a response costs, by the price of its day."""
