"""The replay: runs of a network as one page that people can look at, served here or as a file."""
