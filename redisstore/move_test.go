package redisstore

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/redistest"
)

// While a slot moves to a node whose clock differs, every decision is made once, on the
// same line.
func TestASlotMoves(t *testing.T) {
	other := newWall(t)
	c := redistest.StartCluster(t, 3, func(i int) redistest.Options {
		if i == 1 {
			return redistest.Options{Wrap: other.under}
		}
		return redistest.Options{}
	})
	other.step(t, 45*time.Second)
	s := open(t, Config{Mode: Cluster, Addrs: c.Addrs()})
	p := plan(t, yearly("move", 1000))
	bucket := plan(t, escapement.Limit{Name: "flow", Rate: escapement.PerMinute(60), Burst: 60})
	// A key of the first node.
	name := ""
	for i := 0; name == ""; i++ {
		if k := fmt.Sprint("user", i); c.Owner(int(slot(key("esc:", "move", k)))) == 0 {
			name = k
		}
	}
	at := int(slot(key("esc:", "move", name)))
	if int(slot(key("esc:", "flow", name))) != at {
		t.Fatal("two limits of one identity are in two slots")
	}
	took := int64(0)
	drained := take(t, s, bucket, name, 60)
	first := drained.At()
	step := func(when string) {
		t.Helper()
		for range 3 {
			took++
			if d := take(t, s, p, name, 1); d.Remaining() != 1000-took {
				t.Errorf("%s: %d remain, want %d", when, d.Remaining(), 1000-took)
			}
		}
	}
	step("before")
	c.Begin(t, at, 0, 1)
	c.Migrate(t, at, 0, 1)
	step("while the slot is asked for elsewhere")
	c.End(t, at, 1)
	step("after the move")
	// 45 s were not minted, and nobody is locked out: what was drained refills at its rate.
	d := take(t, s, bucket, name, 0)
	if got, right := d.Remaining(), int64(d.At()-first)/1_000_000; got < right-1 || got > right+1 {
		t.Errorf("%d units after %d s on the line, want %d", got, int64(d.At()-first)/1_000_000, right)
	}
	if lead := d.At() - first; lead > 20_000_000 {
		t.Errorf("the line advanced by %d s in a few", lead/1_000_000)
	}
}

// A node of a cluster dies, and its replica, whose clock is off, takes over: what was
// counted holds, on the same line, without a restart.
func TestAClusterFailsOver(t *testing.T) {
	w := newWall(t)
	w.step(t, -45*time.Second)
	c := redistest.StartCluster(t, 3, func(int) redistest.Options { return redistest.Options{} })
	c.AddReplica(t, 0, redistest.Options{Wrap: w.under})
	s := open(t, Config{Mode: Cluster, Addrs: c.Addrs()[1:], Deadline: time.Second})
	p := plan(t, yearly("fail", 1000))
	flow := plan(t, escapement.Limit{Name: "flow", Rate: escapement.PerSecond(1), Burst: 60})
	name := ""
	for i := 0; name == ""; i++ {
		if k := fmt.Sprint("user", i); c.Owner(int(slot(key("esc:", "fail", k)))) == 0 {
			name = k
		}
	}
	for range 5 {
		take(t, s, p, name, 1)
	}
	drained := take(t, s, flow, name, 60)
	c.Nodes[0].Must(t, "WAIT", "1", "5000")
	c.Nodes[0].Kill()
	if n := used(t, s, p, name); n != 5 {
		t.Errorf("%d units are taken, want 5", n)
	}
	redistest.Eventually(t, "a unit comes back", func() bool {
		return one(t, s, escapement.Claim{Plan: flow, Key: name, Cost: 1}).Admitted
	})
	d := take(t, s, flow, name, 0)
	passed := int64(d.At()-drained.At()) / 1_000_000
	if passed < 0 || passed > 40 || d.Remaining() > passed {
		t.Errorf("%d s passed on the line, %d units are there", passed, d.Remaining())
	}
}

// Hostile identities: every limit of one is in one slot, and no two share a record.
func TestKeysShareASlotPerIdentity(t *testing.T) {
	seen := map[string]string{}
	for _, id := range []string{"", "user{x}", "}{", "{}", "}", "{", "a}b", "1:}", "nul\x00byte", "line\nbreak", "\xff\xfe", "10.0.0.1", "10.0.0.11", string(make([]byte, 128)), string(make([]byte, 129)), string(make([]byte, 512))} {
		a, b := key("esc:", "one", id), key("esc:", "two", id)
		if slot(a) != slot(b) {
			t.Errorf("%q: slots %d and %d", id, slot(a), slot(b))
		}
		for _, k := range []string{a, b} {
			if other, ok := seen[k]; ok {
				t.Errorf("%q and %q share %q", id, other, k)
			}
			seen[k] = id
		}
		if len(a) > 200 {
			t.Errorf("a key of %d bytes", len(a))
		}
	}
	if got := slot("123456789"); got != 12739 {
		t.Errorf("slot of 123456789 is %d, want 12739", got)
	}
}

// A failover to a replica whose clock is off mints nothing and locks nobody out.
func TestAFailoverToAnotherClock(t *testing.T) {
	for _, skew := range []time.Duration{45 * time.Second, -45 * time.Second} {
		t.Run(skew.String(), func(t *testing.T) {
			w := newWall(t)
			w.step(t, skew)
			r := redistest.StartReplicated(t, redistest.Options{}, redistest.Options{Wrap: w.under})
			s := open(t, Config{Mode: Sentinel, Addrs: []string{r.Sentinel.Addr()}, Primary: redistest.Name, Deadline: time.Second})
			p := plan(t, escapement.Limit{Name: "flow", Rate: escapement.PerMinute(60), Burst: 60})
			drained := take(t, s, p, "k", 60)
			r.Primary.Must(t, "WAIT", "1", "5000")
			r.Failover(t)
			redistest.Eventually(t, "the new primary decides, and its clock is seen", func() bool {
				a := one(t, s, escapement.Claim{Plan: p, Key: "k", Cost: 1})
				// A later correction, by less than a millisecond, may have been seen since.
				last := s.Snapshot().Last
				return a.Outcome == escapement.Decided && last > skew-time.Second && last < skew+time.Second
			})
			d, err := s.DecideOne(context.Background(), escapement.Claim{Plan: p, Key: "k", Mode: escapement.Peek})
			if err != nil {
				t.Fatal(err)
			}
			passed := int64(d.At()-drained.At()) / 1_000_000
			if d.Remaining() > passed || passed > 40 || passed < 0 {
				t.Errorf("%d s passed on the line, %d units are there", passed, d.Remaining())
			}
			// It refills, at once and at its rate.
			redistest.Eventually(t, "a unit comes back", func() bool {
				a := one(t, s, escapement.Claim{Plan: p, Key: "k", Cost: 1})
				return a.Outcome == escapement.Decided && a.Admitted
			})
		})
	}
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	pool := certificate(t, dir)
	port := redistest.FreePort(t)
	redistest.Start(t, redistest.Options{Args: []string{"--tls-port", strconv.Itoa(port), "--tls-cert-file", filepath.Join(dir, "cert.pem"),
		"--tls-key-file", filepath.Join(dir, "key.pem"), "--tls-ca-cert-file", filepath.Join(dir, "cert.pem"), "--tls-auth-clients", "no"}})
	s := open(t, Config{Addrs: []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}, TLS: &tls.Config{RootCAs: pool, ServerName: "redis.test"}})
	take(t, s, plan(t, perHour("login", 3)), "k", 1)
	if _, err := Open(Config{Addrs: []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}, TLS: &tls.Config{ServerName: "redis.test"}}); err == nil {
		t.Error("a certificate of nobody's is accepted")
	}
}

// certificate writes cert.pem and key.pem, and returns who trusts them.
func certificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redis.test"}, DNSNames: []string{"redis.test"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "EC PRIVATE KEY", Bytes: secret}}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return pool
}
