"""Parts that several protocols hold."""
