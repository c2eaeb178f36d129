"""Claims about every p-value and interval, and simulations that check them; see ../validity.py."""
