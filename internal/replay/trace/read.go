package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
)

const (
	blockSize = 1 << 20 // bytes read at a time; also the longest line
	headSize  = 64 << 10
)

// Reader reads a trace.
type Reader struct {
	in    *bufio.Reader
	read  int64 // bytes of input, compressed if it is
	Shape *Shape
}

// Open looks at the beginning of a trace. A gzip file is decompressed, whatever it is
// called.
func Open(r io.Reader, format Format) (*Reader, error) {
	t := &Reader{}
	in := bufio.NewReaderSize(&counter{r, &t.read}, headSize)
	if magic, _ := in.Peek(2); len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("trace: %w", err)
		}
		in = bufio.NewReaderSize(z, headSize)
	}
	if bom, _ := in.Peek(3); bytes.Equal(bom, []byte("\ufeff")) {
		_, _ = in.Discard(3)
	}
	head, err := in.Peek(headSize)
	if err != nil && !ended(err) {
		return nil, fmt.Errorf("trace: %w", err)
	}
	if t.Shape, err = Look(head, format); err != nil {
		return nil, err
	}
	t.in = in
	return t, nil
}

type counter struct {
	r io.Reader
	n *int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	*c.n += int64(n)
	return n, err
}

// ended reports whether an input is over, be it in the middle.
func ended(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// End says how an input ended.
type End struct {
	Lines  int64 // read, empty ones included
	Damage error // why there was no more to read, where that is not the end of the input
}

// Read parses the trace in blocks, on as many processors as there are, and hands them to
// take in order, with the number of bytes of the input that were read so far. A block is
// the callee's until take returns. An error of take ends the reading and is returned.
func (t *Reader) Read(ctx context.Context, l *Layout, take func(b *Block, read int64) error) (End, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	workers := runtime.GOMAXPROCS(0)
	depth := 2*workers + 2
	free, work, order := make(chan *Block, depth), make(chan *Block, depth), make(chan *Block, depth)
	for range depth {
		free <- &Block{done: make(chan struct{}, 1)}
	}
	for range workers {
		go func() {
			p := newParser(l)
			for b := range work {
				b.parse(p)
				b.done <- struct{}{}
			}
		}()
	}
	var damage error
	go func() {
		defer close(order) // after which damage is the caller's
		defer close(work)
		damage = t.cut(ctx, free, func(b *Block) { work <- b; order <- b })
	}()
	var end End
	for {
		var b *Block
		more := false
		select {
		case b, more = <-order:
		case <-ctx.Done():
		}
		if err := ctx.Err(); err != nil {
			return end, err // what still reads ends with its input
		}
		if !more {
			end.Damage = damage
			return end, nil
		}
		<-b.done
		b.number(end.Lines + 1)
		end.Lines += b.Lines
		if err := take(b, b.offset); err != nil {
			return end, err
		}
		free <- b
	}
}

// number gives a parsed block its place in the input.
func (b *Block) number(first int64) {
	b.First = first
	for i := range b.Broken {
		b.Broken[i].Line += first
	}
}

// cut reads the input into blocks of whole lines until it ends, and says why if it ends
// before its end.
func (t *Reader) cut(ctx context.Context, free <-chan *Block, emit func(*Block)) error {
	var carry []byte
	head := true
	for {
		var b *Block
		select {
		case b = <-free:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return nil
		}
		if b.buffer == nil {
			b.buffer = make([]byte, blockSize)
		}
		n := copy(b.buffer, carry)
		var err error
		for n < blockSize && err == nil {
			var m int
			m, err = t.in.Read(b.buffer[n:])
			n += m
		}
		b.data, b.head, b.long, b.offset = b.buffer[:n], head, false, t.read
		head = false
		if err != nil {
			emit(b)
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if i := bytes.LastIndexByte(b.data, '\n'); i >= 0 {
			carry = append(carry[:0], b.data[i+1:]...)
			b.data = b.data[:i+1]
			emit(b)
			continue
		}
		carry = carry[:0]
		b.data, b.long = b.data[:0], true
		emit(b)
		if err := t.skipLine(); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// skipLine discards the rest of a line.
func (t *Reader) skipLine() error {
	for {
		_, err := t.in.ReadSlice('\n')
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}
