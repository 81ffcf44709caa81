"""What happens to servers: cuts, kills, dead readers, signals. Real processes over loopback."""
