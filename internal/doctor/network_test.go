package doctor

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/internal/redistest"
	"github.com/escapement-io/escapement/tools/skewrun"
)

// gather collects facts of a machine without files.
func gather(t *testing.T, o Options) *Facts {
	t.Helper()
	o.Root = fstest.MapFS{}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	f, err := Gather(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestStoreFiveSecondsAhead(t *testing.T) {
	tool, err := skewrun.Build(t.Context(), t.TempDir())
	if err == nil {
		err = skewrun.Usable(t.Context(), tool)
	}
	if errors.Is(err, skewrun.ErrUnsupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	ctl := filepath.Join(t.TempDir(), "ctl")
	if err := skewrun.Control(t.Context(), tool, ctl, "set", "5s"); err != nil {
		t.Fatal(err)
	}
	s := redistest.Start(t, redistest.Options{Wrap: func(command []string) []string {
		return append([]string{tool, "run", ctl, "--"}, command...)
	}})
	f := gather(t, Options{Redis: "redis://" + s.Addr()})
	if off := f.Store.Offset + 5*time.Second; f.Store.Failed != "" || off.Abs() > time.Millisecond || off.Abs() > f.Store.Error {
		t.Errorf("%+v, want 5 s behind within 1 ms and within its own error", *f.Store)
	}
	r := Judge(f)
	expect(t, r, want{"store-offset", Fail, []string{"behind redis://" + s.Addr()}})
	if row := r.References[0]; row.Problem != "" || *row.OffsetMS < -5001 || *row.OffsetMS > -4999 {
		t.Errorf("%+v", row)
	}
}

func TestStoreBehindAPassword(t *testing.T) {
	s := redistest.Start(t, redistest.Options{})
	s.Must(t, "CONFIG", "SET", "requirepass", "s3cret")
	f := gather(t, Options{Redis: "redis://default:s3cret@" + s.Addr() + "/2"})
	expect(t, Judge(f), want{"store-offset", OK, []string{s.Addr()}})
	f = gather(t, Options{Redis: "redis://:s3cret@" + s.Addr()})
	expect(t, Judge(f), want{"store-offset", OK, nil})

	r := Judge(gather(t, Options{Redis: "redis://:wr0ng@" + s.Addr()}))
	expect(t, r, want{"store-offset", Fail, []string{"AUTH", "redis-cli"}})
	for _, c := range r.Checks {
		if strings.Contains(c.Detail+c.Fix, "wr0ng") {
			t.Errorf("%s shows the password: %s", c.Name, c.Detail)
		}
	}
	expect(t, Judge(gather(t, Options{Redis: "redis://" + s.Addr()})), want{"store-offset", Fail, []string{"NOAUTH"}})
}

// reply is a server that answers whatever it is asked with the same bytes.
func reply(t *testing.T, answer string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := bufio.NewReader(c).ReadString('\n'); err == nil {
					_, _ = io.WriteString(c, answer)
				}
			}()
		}
	}()
	return l.Addr().String()
}

func TestWhatIsNoStoreIsSaidSo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	l.Close()
	for name, addr := range map[string]string{
		"nobody":     closed,
		"http":       reply(t, "HTTP/1.1 400 Bad Request\r\n\r\n"),
		"endless":    reply(t, strings.Repeat("x", 10_000)),
		"many":       reply(t, "*1000000000\r\n"),
		"huge":       reply(t, "*2\r\n$2000000000\r\n"),
		"no time":    reply(t, "*2\r\n$3\r\n-12\r\n$1\r\n0\r\n"),
		"far future": reply(t, "*2\r\n$19\r\n9223372036854775807\r\n$1\r\n0\r\n"),
		"text":       reply(t, "+OK\r\n"),
	} {
		r := Judge(gather(t, Options{Redis: "redis://" + addr}))
		for _, c := range r.Checks {
			if c.Name == "store-offset" && (c.Status != Fail || !strings.Contains(c.Detail, addr)) {
				t.Errorf("%s: %+v", name, c)
			}
		}
	}
}

func TestOptionsAreRefusedAllAtOnce(t *testing.T) {
	_, err := Gather(t.Context(), Options{Root: fstest.MapFS{}, Redis: "http://:s3cret@x", Fleet: []string{"host:1", "http://"}})
	if err == nil || strings.Count(err.Error(), "\n") != 2 || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("%v", err)
	}
	for _, address := range []string{"redis://", "redis://u:s3cret@h:%zz", "tcp://x", ""} {
		if _, err := newRedisClock(address); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v", address, err)
		}
	}
	for address, want := range map[string]string{"redis://h": "h:6379", "redis://[::1]": "[::1]:6379", "rediss://u:p@h:7": "h:7", "unix:///run/r.sock": "/run/r.sock"} {
		c, err := newRedisClock(address)
		if err != nil || c.addr != want || (c.tls != nil) != strings.HasPrefix(address, "rediss") || strings.Contains(c.name, ":p@") {
			t.Errorf("%s: %+v, %v", address, c, err)
		}
	}
}

// ntpServer answers with the time of this machine and an offset.
func ntpServer(t *testing.T, offset time.Duration) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { conn.Close(); <-done })
	go func() {
		defer close(done)
		in := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(in)
			if err != nil {
				return
			}
			if n < 48 {
				continue
			}
			now := clock.Wall().Add(offset)
			stamp := func(b []byte, at time.Time) {
				const sinceNTP = 2_208_988_800
				binary.BigEndian.PutUint32(b, uint32(at.Unix()+sinceNTP))
				binary.BigEndian.PutUint32(b[4:], uint32(uint64(at.Nanosecond())<<32/1e9))
			}
			out := make([]byte, 48)
			out[0], out[1], out[3] = 4<<3|4, 2, 0xec // version 4, server; stratum 2; precision 1 µs
			binary.BigEndian.PutUint32(out[4:], 1<<16/100)
			binary.BigEndian.PutUint32(out[8:], 1<<16/1000)
			stamp(out[16:], now.Add(-time.Minute))
			copy(out[24:32], in[40:48])
			stamp(out[32:], now)
			stamp(out[40:], now)
			_, _ = conn.WriteTo(out, from)
		}
	}()
	return conn.LocalAddr().String()
}

func TestNTPOffsets(t *testing.T) {
	right, wrong := ntpServer(t, 0), ntpServer(t, -3*time.Second)
	f := gather(t, Options{NTP: []string{right, wrong}})
	expect(t, Judge(f), want{"ntp-offset", Fail, []string{
		"ahead of ntp " + wrong, "± ", "ntp " + right + " and ntp " + wrong + " differ by", "--ntp HOST --ntp HOST"}})
	if o := f.NTP[1]; (o.Offset-3*time.Second).Abs() > o.Error || o.Error > time.Second {
		t.Errorf("%+v, want 3 s ahead within its error", o)
	}
	expect(t, Judge(gather(t, Options{NTP: []string{right}})), want{"ntp-offset", OK, []string{"ntp " + right}})
}

func TestSilentNTPServerIsAFinding(t *testing.T) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0") // nobody answers
	if err != nil {
		t.Fatal(err)
	}
	addr := conn.LocalAddr().String()
	conn.Close()
	expect(t, Judge(gather(t, Options{NTP: []string{addr}})), want{"ntp-offset", Warning, []string{addr, "UDP port 123"}})
}

func TestBareMachineOnTheRealRoot(t *testing.T) {
	f, err := Gather(t.Context(), Options{Root: os.DirFS("/"), Watch: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, Judge(f))
	if f.Watch == nil || f.Watch.Failed == "" && f.Watch.Tally.Checks == 0 {
		t.Errorf("the clocks were not watched: %+v", f.Watch)
	}
}

func TestStoreByTLSIsVerified(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	defer s.Close()
	expect(t, Judge(gather(t, Options{Redis: "rediss://" + s.Listener.Addr().String()})), want{"store-offset", Fail, []string{"certificate"}})
}
