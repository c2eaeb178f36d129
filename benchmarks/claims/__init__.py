"""What every p-value and interval promises, and simulations that put it to the test; see ../validity.py."""
