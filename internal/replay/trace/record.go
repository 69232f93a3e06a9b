package trace

// Entry is one request of a trace.
type Entry struct {
	At   int64 // Unix microseconds
	Cost int64 // 0 to 2^53-1
	Line int32 // within its block, from 0
}

// Fault says what is wrong with a line that could not be read.
type Fault uint8

// The faults.
const (
	Fine Fault = iota
	BadTime
	BadCost
	NoTime
	NoKey
	FewColumns
	BadQuote
	BadJSON
	BadLog
	TooLong
)

var faultTexts = [...]string{
	Fine: "fine", BadTime: "the time is not understood, or not between 1970 and 2112",
	BadCost: "the cost is not a whole number from 0 to 2^53-1", NoTime: "no time", NoKey: "no key",
	FewColumns: "too few columns", BadQuote: "a quote is not closed", BadJSON: "not a JSON object",
	BadLog: "not a line of an access log", TooLong: "longer than 1 MiB",
}

func (f Fault) String() string { return faultTexts[f] }

// Broken is a line that could not be read.
type Broken struct {
	Line  int64 // of the input, from 1
	Fault Fault
}

// MaxBroken is how many broken lines of a block are kept; all are counted.
const MaxBroken = 8

// Block is a run of lines, parsed.
type Block struct {
	First   int64 // number of its first line, from 1
	Lines   int64 // in it, empty ones included
	Entries []Entry
	Keys    [][]byte // Layout.Keys of them per entry; valid until the block is given back
	Broken  []Broken
	Faults  int64 // broken lines, those not kept included

	head   bool // it begins the input
	long   bool // it is one line that is too long to be read
	offset int64
	buffer []byte
	data   []byte // what of buffer is to be parsed
	arena  []byte // keys that are not a piece of data
	done   chan struct{}
}

// Number is the line of an entry in the input, from 1.
func (b *Block) Number(e *Entry) int64 { return b.First + int64(e.Line) }

// parse reads the lines of data into the block.
func (b *Block) parse(p *parser) {
	b.Entries, b.Keys, b.Broken, b.arena = b.Entries[:0], b.Keys[:0], b.Broken[:0], b.arena[:0]
	b.Lines, b.Faults = 0, 0
	if b.long {
		b.Lines = 1
		b.broken(0, TooLong)
		return
	}
	rest := b.data
	for len(rest) > 0 {
		line := rest
		if i := indexNewline(rest); i >= 0 {
			line, rest = rest[:i], rest[i+1:]
		} else {
			rest = nil
		}
		n := b.Lines
		b.Lines++
		if len(line) > 0 && line[len(line)-1] == '\r' {
			line = line[:len(line)-1]
		}
		if blank(line) || b.head && n < p.layout.skip {
			continue
		}
		e := Entry{Cost: 1, Line: int32(n)}
		if f := p.line(line, &e, b); f != Fine {
			b.broken(n, f)
			continue
		}
		b.Entries = append(b.Entries, e)
	}
}

func (b *Block) broken(line int64, f Fault) {
	b.Faults++
	if len(b.Broken) < MaxBroken {
		b.Broken = append(b.Broken, Broken{line, f})
	}
}

func blank(line []byte) bool {
	for _, c := range line {
		if c != ' ' && c != '\t' {
			return false
		}
	}
	return true
}
