package escapement

// WithBasis is the same decision said to rest on b: for stores that answer in the place
// of another one.
func (d Decision) WithBasis(b Basis) Decision {
	p := d.Plan()
	if p == nil {
		return d
	}
	out := Decide(p, d.verdict(), b)
	out.Allowed = d.Allowed
	return out
}
