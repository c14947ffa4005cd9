"""Bodies that services said, changed at random, through every decoder: a reply or one of the library's errors."""
