package trace

import "fmt"

// Unit is what numbers in a time column count.
type Unit uint8

// The units. Auto goes by the size of the number: from 1e17 on nanoseconds, from 1e14
// microseconds, from 1e11 milliseconds, else seconds; right for times since 1974.
const (
	AutoUnit Unit = iota
	Seconds
	Millis
	Micros
	Nanos
)

var unitNames = [...]string{AutoUnit: "auto", Seconds: "s", Millis: "ms", Micros: "us", Nanos: "ns"}

func (u Unit) String() string { return unitNames[u] }

// ParseUnit is the inverse of String.
func ParseUnit(s string) (Unit, error) {
	for u, name := range unitNames {
		if s == name {
			return Unit(u), nil
		}
	}
	return 0, fmt.Errorf("trace: unknown time unit %q; use auto, s, ms, us or ns", s)
}

// maxMicros is the year 2112, the end of the line of any store.
const maxMicros = 1<<52 - 1

// parseTime reads RFC 3339 (a space for the T is fine, no zone means UTC), a number since
// the Unix epoch, or the time of an access log without its brackets. The result is Unix
// microseconds, rounded down.
func parseTime(b []byte, unit Unit) (micros int64, ok bool) {
	switch {
	case len(b) >= 19 && b[4] == '-':
		micros, ok = parseRFC3339(b)
	case len(b) >= 20 && b[2] == '/':
		micros, ok = parseLogTime(b)
	default:
		micros, ok = parseEpoch(b, unit)
	}
	return micros, ok && micros >= 0 && micros <= maxMicros
}

// parseEpoch reads digits with an optional fraction.
func parseEpoch(b []byte, unit Unit) (int64, bool) {
	n, i := int64(0), 0
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		if i == 19 {
			return 0, false
		}
		n = n*10 + int64(b[i]-'0')
	}
	if i == 0 || n < 0 {
		return 0, false
	}
	if unit == AutoUnit {
		switch {
		case n >= 1e17:
			unit = Nanos
		case n >= 1e14:
			unit = Micros
		case n >= 1e11:
			unit = Millis
		default:
			unit = Seconds
		}
	}
	scale := int64(1)
	switch unit {
	case Nanos:
		n /= 1000
		scale = 0
	case Millis:
		scale = 1000
	case Seconds:
		scale = 1_000_000
	case Micros, AutoUnit:
	}
	if scale > 0 {
		if n > maxMicros/scale {
			return 0, false
		}
		n *= scale
	}
	if i == len(b) {
		return n, true
	}
	if b[i] != '.' || i+1 == len(b) || len(b)-i > 20 {
		return 0, false
	}
	for _, c := range b[i+1:] {
		if c < '0' || c > '9' {
			return 0, false
		}
		scale /= 10
		n += int64(c-'0') * scale
	}
	return n, true
}

// parseRFC3339 reads 2006-01-02T15:04:05.999999Z and its variants.
func parseRFC3339(b []byte) (int64, bool) {
	if b[7] != '-' || b[13] != ':' || b[16] != ':' || b[10] != 'T' && b[10] != 't' && b[10] != ' ' {
		return 0, false
	}
	hi, ok1 := two(b[0:])
	lo, ok2 := two(b[2:])
	month, ok3 := two(b[5:])
	day, ok4 := two(b[8:])
	clock, ok5 := parseClock(b[11:])
	if !(ok1 && ok2 && ok3 && ok4 && ok5) {
		return 0, false
	}
	days, ok := daysOf(hi*100+lo, month, day)
	if !ok {
		return 0, false
	}
	micros := (days*86400 + clock) * 1_000_000
	rest := b[19:]
	if len(rest) > 0 && rest[0] == '.' {
		scale, i := int64(1_000_000), 1
		for ; i < len(rest) && rest[i] >= '0' && rest[i] <= '9'; i++ {
			scale /= 10
			micros += int64(rest[i]-'0') * scale
		}
		if i == 1 {
			return 0, false
		}
		rest = rest[i:]
	}
	if len(rest) == 0 || len(rest) == 1 && (rest[0] == 'Z' || rest[0] == 'z') {
		return micros, true
	}
	if len(rest) != 6 || rest[3] != ':' {
		return 0, false
	}
	offset, ok := parseZone(rest[0], rest[1:3], rest[4:6])
	return micros - offset, ok
}

// parseLogTime reads 02/Jan/2006:15:04:05 -0700.
func parseLogTime(b []byte) (int64, bool) {
	if b[6] != '/' || b[11] != ':' || b[14] != ':' || b[17] != ':' {
		return 0, false
	}
	day, ok1 := two(b)
	month := monthOf(b[3], b[4], b[5])
	hi, ok2 := two(b[7:])
	lo, ok3 := two(b[9:])
	clock, ok4 := parseClock(b[12:])
	if !(ok1 && ok2 && ok3 && ok4) {
		return 0, false
	}
	days, ok := daysOf(hi*100+lo, month, day)
	if !ok {
		return 0, false
	}
	micros := (days*86400 + clock) * 1_000_000
	rest := b[20:]
	if len(rest) == 0 {
		return micros, true
	}
	if len(rest) != 6 || rest[0] != ' ' {
		return 0, false
	}
	offset, ok := parseZone(rest[1], rest[2:4], rest[4:6])
	return micros - offset, ok
}

// parseClock reads 15:04:05 as seconds of the day; a leap second runs into the next.
func parseClock(b []byte) (int64, bool) {
	h, ok1 := two(b)
	m, ok2 := two(b[3:])
	s, ok3 := two(b[6:])
	return h*3600 + m*60 + s, ok1 && ok2 && ok3 && h < 24 && m < 60 && s <= 60
}

// parseZone is the offset in microseconds that a zone such as +0530 is ahead of UTC.
func parseZone(sign byte, hh, mm []byte) (int64, bool) {
	h, ok1 := two(hh)
	m, ok2 := two(mm)
	offset := (h*3600 + m*60) * 1_000_000
	if sign == '-' {
		offset = -offset
	} else if sign != '+' {
		return 0, false
	}
	return offset, ok1 && ok2 && h < 24 && m < 60
}

func two(b []byte) (int64, bool) {
	x, y := b[0]-'0', b[1]-'0'
	return int64(x)*10 + int64(y), x < 10 && y < 10
}

func monthOf(a, b, c byte) int64 {
	switch string([]byte{a, b, c}) {
	case "Jan":
		return 1
	case "Feb":
		return 2
	case "Mar":
		return 3
	case "Apr":
		return 4
	case "May":
		return 5
	case "Jun":
		return 6
	case "Jul":
		return 7
	case "Aug":
		return 8
	case "Sep":
		return 9
	case "Oct":
		return 10
	case "Nov":
		return 11
	case "Dec":
		return 12
	}
	return 0
}

// daysOf is the days from 1970-01-01 to a date of the Gregorian calendar.
func daysOf(y, m, d int64) (int64, bool) {
	if m < 1 || m > 12 || d < 1 || d > monthLength(y, m) {
		return 0, false
	}
	// Years that begin in March have the leap day last.
	if m <= 2 {
		y--
		m += 12
	}
	return 365*y + y/4 - y/100 + y/400 + (153*(m-3)+2)/5 + d - 719469, true
}

func monthLength(y, m int64) int64 {
	switch m {
	case 2:
		if y%4 == 0 && (y%100 != 0 || y%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}
