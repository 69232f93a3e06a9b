package ntp

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement-io/escapement/clock"
)

// server answers NTP requests on the loopback as a test tells it to.
type server struct {
	addr   string
	asked  atomic.Int32
	offset time.Duration
	// alter changes an answer before it is sent, and length, unless 0, cuts or pads it.
	alter  func(packet []byte)
	length int
}

// seconds between the NTP epoch and the Unix epoch.
const ntpToUnix = 2_208_988_800

func stamp(b []byte, t time.Time) {
	binary.BigEndian.PutUint32(b, uint32(t.Unix()+ntpToUnix))
	binary.BigEndian.PutUint32(b[4:], uint32(uint64(t.Nanosecond())<<32/1e9))
}

func serve(t *testing.T, s *server) *server {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = conn.LocalAddr().String()
	done := make(chan struct{})
	t.Cleanup(func() { conn.Close(); <-done })
	go func() {
		defer close(done)
		buf := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if n < 48 {
				continue
			}
			s.asked.Add(1)
			now := clock.Wall().Add(s.offset)
			out := make([]byte, 48)
			out[0] = 4<<3 | 4                               // version 4, server
			out[1] = 2                                      // stratum
			out[3] = 0xec                                   // precision 2^-20 s
			binary.BigEndian.PutUint32(out[4:], 1<<16/100)  // root delay 10 ms
			binary.BigEndian.PutUint32(out[8:], 1<<16/1000) // root dispersion 1 ms
			stamp(out[16:], now.Add(-time.Minute))
			copy(out[24:], buf[40:48])
			stamp(out[32:], now)
			stamp(out[40:], now)
			if s.alter != nil {
				s.alter(out)
			}
			if s.length != 0 {
				out = append(out, make([]byte, 1<<16)...)[:s.length]
			}
			if _, err := conn.WriteTo(out, from); err != nil {
				return
			}
		}
	}()
	return s
}

func TestMeasureIsRightWithinItsError(t *testing.T) {
	for _, offset := range []time.Duration{0, 5 * time.Second, -3 * time.Second, 320 * time.Millisecond} {
		s := serve(t, &server{offset: offset})
		ref := Server(s.addr)
		got, err := ref.Measure(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ahead, ok := clock.Offset(got)
		if !ok {
			t.Fatal("the clocks could not be read together")
		}
		if (ahead + offset).Abs() > got.Err {
			t.Errorf("a server %v ahead: we are %v ahead, ± %v", offset, ahead, got.Err)
		}
		// The fields of the packet hold a little less than 10 ms and 1 ms, to 15 µs.
		if got.Err < 5980*time.Microsecond || got.Err > 6*time.Millisecond+got.RTT+time.Millisecond {
			t.Errorf("error %v, want 5 ms of delay and 1 ms of dispersion, and half of %v", got.Err, got.RTT)
		}
	}
}

func TestUnfitAnswersAreRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		alter func([]byte)
	}{
		{"not synchronised", func(p []byte) { p[0] |= 3 << 6 }},
		{"stratum 16", func(p []byte) { p[1] = 16 }},
		{"dispersion of 20 s", func(p []byte) { binary.BigEndian.PutUint32(p[8:], 20<<16) }},
		{"an answer to another question", func(p []byte) { p[24] ^= 1 }},
		{"stratum 0", func(p []byte) { p[1] = 0 }},
		{"stratum 255", func(p []byte) { p[1] = 255 }},
		{"sent before it was received", func(p []byte) { stamp(p[40:], clock.Wall().Add(-time.Second)) }},
		{"held for longer than we waited", func(p []byte) { stamp(p[32:], clock.Wall().Add(-time.Hour)) }},
		{"no transmit time", func(p []byte) { clear(p[40:48]) }},
		{"a precision of half a minute", func(p []byte) { p[3] = 5 }},
		{"a precision of 2^34 s", func(p []byte) { p[3] = 34 }},
		{"a client's packet", func(p []byte) { p[0] = 4<<3 | 3 }},
		{"zeros", func(p []byte) { clear(p) }},
	} {
		s := serve(t, &server{alter: c.alter})
		if got, err := Server(s.addr).Measure(t.Context()); err == nil {
			t.Errorf("%s: accepted as %+v", c.name, got)
		} else if !strings.Contains(err.Error(), s.addr) {
			t.Errorf("%s: the error does not name the server: %v", c.name, err)
		}
	}
}

// A server that is not ready says so by a kiss as well; that is no reason to stay away.
func TestKissOfAServerThatIsNotReadyIsNoDeath(t *testing.T) {
	for _, code := range []string{"INIT", "STEP", "\xff\x00\n\x1b"} {
		s := serve(t, &server{alter: func(p []byte) { p[1] = 0; p[0] |= 3 << 6; copy(p[12:], code) }})
		ref := Server(s.addr)
		for range 2 {
			if _, err := ref.Measure(t.Context()); err == nil {
				t.Errorf("%q: accepted", code)
			}
		}
		if s.asked.Load() != 2 {
			t.Errorf("%q: the server was asked %d times, want 2", code, s.asked.Load())
		}
	}
}

// Whoever did not see the question cannot keep us from asking.
func TestForgedKissIsIgnored(t *testing.T) {
	s := serve(t, &server{alter: func(p []byte) { p[1] = 0; copy(p[12:], "DENY"); p[24] ^= 1 }})
	ref := Server(s.addr)
	for range 2 {
		if _, err := ref.Measure(t.Context()); err == nil {
			t.Error("accepted")
		}
	}
	if s.asked.Load() != 2 {
		t.Errorf("the server was asked %d times, want 2", s.asked.Load())
	}
}

// Answers that are cut off or far too long are refused or read as far as they go.
func TestAnswersOfOtherLengths(t *testing.T) {
	for _, n := range []int{1, 47, 49, 1024, 60_000} {
		s := serve(t, &server{length: n})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		got, err := Server(s.addr).Measure(ctx)
		cancel()
		if err == nil && (n < 48 || got.Err < 5*time.Millisecond) {
			t.Errorf("%d bytes: accepted as %+v", n, got)
		}
	}
}

func TestKissOfDeathIsObeyed(t *testing.T) {
	s := serve(t, &server{alter: func(p []byte) { p[1] = 0; copy(p[12:], "RATE") }})
	ref := Server(s.addr)
	if _, err := ref.Measure(t.Context()); err == nil || !strings.Contains(err.Error(), "RATE") {
		t.Errorf("got %v, want the kiss code", err)
	}
	if _, err := ref.Measure(t.Context()); err == nil || s.asked.Load() != 1 {
		t.Errorf("the server was asked %d times, last answer %v", s.asked.Load(), err)
	}
}

func TestContextEndsAMeasurement(t *testing.T) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0") // nobody answers
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := Server(conn.LocalAddr().String()).Measure(ctx); err == nil {
		t.Error("a measurement without an answer")
	}
	cancel()
	if _, err := Server(conn.LocalAddr().String()).Measure(ctx); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}
