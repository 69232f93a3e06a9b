package replay

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// number writes 1234567 as 1,234,567.
func number(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func share(part, whole int64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f %%", 100*float64(part)/float64(whole))
}

// keyText shows a key of any bytes on one line of a terminal.
func keyText(key string) string {
	const most = 64
	short := key
	if len(short) > most {
		short = short[:most]
	}
	plain := short != "" && utf8.ValidString(short)
	for _, r := range short {
		plain = plain && strconv.IsPrint(r) && r != ' ' && r != '"'
	}
	if !plain {
		short = strconv.Quote(short)
	}
	if len(key) > most {
		short += "..."
	}
	return short
}

// Text writes the report for people.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	r.Input.text(&b)
	if len(r.Sets) > 1 {
		r.compare(&b)
	}
	for i := range r.Sets {
		s := &r.Sets[i]
		if len(r.Sets) > 1 {
			fmt.Fprintf(&b, "\n== %s\n", s.Name)
		}
		if len(r.Sets) == 1 && len(s.Limits) > 1 {
			fmt.Fprintf(&b, "\nadmitted %s, refused %s (%s)\n", number(s.Admitted), number(s.Refused), share(s.Refused, s.Admitted+s.Refused))
		}
		for j := range s.Limits {
			s.Limits[j].text(&b)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (in *Input) text(b *strings.Builder) {
	fmt.Fprintf(b, "%s: %s requests in %s lines (%s), %s keys\n", in.File, number(in.Requests), number(in.Lines), in.Format, number(in.Keys))
	if in.Requests > 0 {
		fmt.Fprintf(b, "  %s to %s, %v; at most %s units in a second (%s)\n", in.From, in.To, in.Span(), number(in.Peak.Units), in.Peak.At)
	}
	if in.Broken > 0 {
		fmt.Fprintf(b, "  broken and left out: %s%s\n", countLines(in.Broken), lines(in.BrokenAt, in.Broken))
	}
	if in.OutOfOrder > 0 {
		fmt.Fprintf(b, "  out of order, taken at the latest time so far: %s, by up to %s%s\n", countLines(in.OutOfOrder), in.BackMost, lines(in.OrderAt, in.OutOfOrder))
	}
	if in.Damage != "" {
		fmt.Fprintf(b, "  the input could not be read to its end: %s\n", in.Damage)
	}
}

func countLines(n int64) string {
	if n == 1 {
		return "1 line"
	}
	return number(n) + " lines"
}

// lines names the first of the lines that something is wrong with.
func lines(at []Line, all int64) string {
	var b strings.Builder
	for _, l := range at {
		fmt.Fprintf(&b, "\n    line %s: %s", number(l.Line), l.Problem)
	}
	if more := all - int64(len(at)); more > 0 {
		fmt.Fprintf(&b, "\n    and %s more", number(more))
	}
	return b.String()
}

// compare sets the sums side by side.
func (r *Report) compare(b *strings.Builder) {
	rows := []struct {
		name  string
		value func(s *SetReport) string
	}{
		{"", func(s *SetReport) string { return s.Name }},
		{"admitted", func(s *SetReport) string { return number(s.Admitted) }},
		{"refused", func(s *SetReport) string { return number(s.Refused) }},
		{"refused share", func(s *SetReport) string { return share(s.Refused, s.Admitted+s.Refused) }},
		{"refused units", func(s *SetReport) string { return number(s.RefusedUnits) }},
		{"busiest second", func(s *SetReport) string { return number(s.Peak.Units) }},
	}
	b.WriteByte('\n')
	for _, row := range rows {
		fmt.Fprintf(b, "%-14s", row.name)
		for i := range r.Sets {
			width := 0
			for _, other := range rows {
				width = max(width, utf8.RuneCountInString(other.value(&r.Sets[i])))
			}
			fmt.Fprintf(b, "   %*s", width, row.value(&r.Sets[i]))
		}
		b.WriteByte('\n')
	}
}

func (l *LimitReport) text(b *strings.Builder) {
	fmt.Fprintf(b, "\nlimit %s: %s, %s", l.Name, l.Algorithm, number(l.Count))
	if l.Per != "" {
		fmt.Fprintf(b, " per %s", l.Per)
	} else {
		b.WriteString(" per calendar window")
	}
	if l.Capacity != l.Count {
		fmt.Fprintf(b, ", burst %s", number(l.Capacity))
	}
	if len(l.Key) > 0 {
		fmt.Fprintf(b, ", by %s", strings.Join(l.Key, " and "))
	} else {
		b.WriteString(", all together")
	}
	if l.Shadow {
		b.WriteString(", shadow")
	}
	b.WriteByte('\n')
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "  admitted\t%s\n", number(l.Admitted))
	fmt.Fprintf(w, "  refused\t%s (%s), %s of %s keys\n", number(l.Refused), share(l.Refused, l.Admitted+l.Refused), number(l.KeysRefused), number(l.Keys))
	if l.First != nil {
		fmt.Fprintf(w, "  first refusal\t%s, line %s, %s\n", l.First.Time, number(l.First.Line), keyText(l.First.Key))
		fmt.Fprintf(w, "  last refusal\t%s, line %s, %s\n", l.Last.Time, number(l.Last.Line), keyText(l.Last.Key))
	}
	if t := l.Least; t != nil {
		fmt.Fprintf(w, "  closest\t%s of %s left (%.1f %% used), %s, line %s, %s\n", number(t.Remaining), number(l.Capacity), 100*t.Utilisation, t.Time, number(t.Line), keyText(t.Key))
	}
	if l.Delayed > 0 {
		fmt.Fprintf(w, "  delayed\t%s, at most %s\n", number(l.Delayed), l.LongestDelay)
	}
	if e := l.Enough; e != nil {
		now := l.Count
		if e.Field == "burst" {
			now = l.Capacity
		}
		fmt.Fprintf(w, "  refuses nobody\tfrom a %s of %s on; now %s\n", e.Field, number(e.Value), number(now))
	}
	_ = w.Flush() // a strings.Builder takes everything
	if len(l.Worst) == 0 {
		return
	}
	w = tabwriter.NewWriter(b, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "refused\tadmitted\t   key\n")
	for _, k := range l.Worst {
		fmt.Fprintf(w, "%s\t%s\t   %s\n", number(k.Refused), number(k.Admitted), keyText(k.Key))
	}
	_ = w.Flush()
}
