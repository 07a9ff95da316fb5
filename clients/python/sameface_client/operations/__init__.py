"""Every call as the requests that it takes, without a connection: both kinds of clients run these."""
