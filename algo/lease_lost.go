package algo

// The version of a record counts its syncs and the units that they handed out. A holder
// says the one it saw last; a record that is behind it has lost writes, such as in a
// failover to a copy that lags, and with them at most as many promises as it is behind, as
// far as that holder knows. With a fence the record then counts as used up as long as what
// was promised may be in use.

// missing is by how much a record is behind what the holder saw. A record from before
// there were versions is behind nothing.
func missing(ver *int64, fresh bool, a *Ask) (lost int64) {
	if a.Ver > *ver && (*ver > 0 || fresh) {
		lost = a.Ver - *ver
	}
	*ver = max(*ver, min(a.Ver, MaxInt))
	return lost
}

// lent counts an answer that hands out so many units, and returns the version.
func lent(ver *int64, units int64) int64 {
	*ver = min(MaxInt, *ver+1+units)
	return *ver
}
