package config

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/escapement-io/escapement/internal/config/tree"
)

// readStores reads the shared stores that limits refer to by name.
func (b *builder) readStores(v tree.Value) {
	entries, _ := v.Entries(MaxStores)
	for _, e := range entries {
		b.stores[e.Name] = nil
		o, ok := e.Object()
		if !ok {
			continue
		}
		errors := b.report.Errors()
		if kind, ok := o.Need("type", "write type: redis"); ok {
			kind.OneOf("redis")
		}
		s := &Store{Name: e.Name, Deadline: StoreDeadline}
		if len(e.Name) > 64 {
			e.Key.Fail("the name is longer than 64 characters", "shorten it")
		}
		b.readWay(o, s)
		b.readAccount(o, s)
		if v, ok := o.Get("tls"); ok {
			s.TLS = readStoreTLS(v)
		}
		readUse(o, s)
		o.Done()
		if b.report.Errors() == errors {
			b.stores[e.Name] = s
		}
	}
}

// readWay reads how a store is reached: url, cluster or sentinel.
func (b *builder) readWay(o *tree.Object, s *Store) {
	ways := 0
	if v, ok := o.Get("url"); ok {
		ways++
		b.redisURL(v, s)
	}
	if v, ok := o.Get("cluster"); ok {
		ways++
		s.Mode, s.Addrs = "cluster", addresses(v)
	}
	if v, ok := o.Get("sentinel"); ok {
		ways++
		b.readSentinel(v, s)
	}
	if ways != 1 {
		o.Fail("a store is reached in exactly one way", "write one of url, cluster or sentinel")
	}
	if v, ok := o.Get("database"); ok {
		n, ok := v.Int(0, maxDatabase)
		if ok && s.Mode != "sentinel" {
			v.Fail("database goes with sentinel only", "write the number at the end of url; a cluster has none")
		}
		s.DB = int(n)
	}
}

const maxDatabase = 1 << 20

// readAccount reads who the store is told is asking.
func (b *builder) readAccount(o *tree.Object, s *Store) {
	for _, field := range []struct {
		key string
		to  *string
	}{{"username", &s.Username}, {"password", &s.Password}} {
		v, ok := o.Get(field.key)
		if !ok {
			continue
		}
		text, ok := b.secret(v)
		if ok && *field.to != "" {
			v.Fail(field.key+" is in url too", "write it in one of the two places")
		}
		*field.to = text
	}
	if s.Username != "" && s.Password == "" && !o.Has("password") {
		o.Fail("username without password", "write both, or neither")
	}
}

// readUse reads how a store is used.
func readUse(o *tree.Object, s *Store) {
	if v, ok := o.Get("deadline"); ok {
		s.Deadline, _ = v.Duration(time.Millisecond, 10*time.Second)
	}
	if v, ok := o.Get("prefix"); ok {
		s.Prefix, _ = v.Text()
		if strings.ContainsAny(s.Prefix, "{}") || len(s.Prefix) > 64 {
			v.Fail(v.Quote()+" cannot begin every key", "use up to 64 bytes without braces")
		}
	}
	if v, ok := o.Get("expiry_margin"); ok {
		s.ExpiryMargin, _ = v.Duration(time.Second, 30*24*time.Hour)
	}
	if v, ok := o.Get("connections"); ok {
		n, _ := v.Int(1, 8)
		s.Connections = int(n)
	}
	if v, ok := o.Get("instances"); ok {
		n, _ := v.Int(1, 10_000)
		s.Instances = int(n)
	}
}

// redisURL reads redis://USER:PASSWORD@HOST:PORT/DB, or rediss:// for TLS.
func (b *builder) redisURL(v tree.Value, s *Store) {
	text, ok := b.secret(v)
	if !ok {
		return
	}
	const hint = "write redis://HOST:PORT/DB, or rediss:// for TLS"
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" {
		v.Fail("not the URL of a Redis server", hint)
		return
	}
	port := u.Port()
	if port == "" {
		port = "6379"
	}
	if db := strings.TrimPrefix(u.Path, "/"); db != "" {
		n, err := strconv.ParseUint(db, 10, 20)
		if err != nil {
			v.Fail("the URL does not end in the number of a database", hint)
			return
		}
		s.DB = int(n)
	}
	s.Mode, s.Addrs = "single", []string{net.JoinHostPort(u.Hostname(), port)}
	s.Username = u.User.Username()
	s.Password, _ = u.User.Password()
	if u.Scheme == "rediss" {
		s.TLS = &StoreTLS{Verify: true}
	}
}

func addresses(v tree.Value) []string {
	var all []string
	for _, item := range v.Texts(1000) {
		s, ok := item.Text()
		if _, port, err := net.SplitHostPort(s); ok && (err != nil || port == "") {
			item.Fail(item.Quote()+" is not host:port", "write an address and a port, such as 10.0.0.1:6379")
		}
		all = append(all, s)
	}
	return all
}

func (b *builder) readSentinel(v tree.Value, s *Store) {
	s.Mode = "sentinel"
	o, ok := v.Object()
	if !ok {
		return
	}
	if v, ok := o.Need("master", "write the name under which the sentinels know it"); ok {
		s.Primary, _ = v.Text()
	}
	if v, ok := o.Need("addresses", "list the sentinels as host:port"); ok {
		s.Addrs = addresses(v)
	}
	if v, ok := o.Get("username"); ok {
		s.SentinelUsername, _ = b.secret(v)
	}
	if v, ok := o.Get("password"); ok {
		s.SentinelPassword, _ = b.secret(v)
	}
	o.Done()
}

func readStoreTLS(v tree.Value) *StoreTLS {
	t := &StoreTLS{Verify: true}
	o, ok := v.Object()
	if !ok {
		return t
	}
	if v, ok := o.Get("verify"); ok {
		if t.Verify, _ = v.Bool(); !t.Verify {
			v.Warn("anybody between here and the store can take its place", "remove verify: false; name the authority with ca")
		}
	}
	for _, field := range []struct {
		key string
		to  *string
	}{{"ca", &t.CA}, {"cert", &t.Cert}, {"key", &t.Key}, {"server_name", &t.ServerName}} {
		if v, ok := o.Get(field.key); ok {
			*field.to, _ = v.Text()
		}
	}
	if o.Has("cert") != o.Has("key") {
		o.Fail("cert and key belong together", "write both, or neither")
	}
	o.Done()
	return t
}

// addStore is the store of the configuration that equals s, or s itself from now on.
func (b *builder) addStore(s *Store, at tree.Value) *Store {
	name, taken := s.Name, 1
	for _, known := range b.config.Stores {
		if s.sameBut(known) {
			return known
		}
		if known.Name == s.Name {
			taken++
			s.Name = fmt.Sprintf("%s#%d", name, taken)
		}
	}
	if len(b.config.Stores) == MaxStores {
		at.Fail(fmt.Sprintf("more than %d different stores", MaxStores), "let plugins name the same store in the same way: they share it then")
		return s
	}
	b.config.Stores = append(b.config.Stores, s)
	return s
}

// nearestHint names the key of known that word may have meant.
func nearestHint[V any](word string, known map[string]V, otherwise string) string {
	if len(known) > 1000 {
		return otherwise
	}
	if near := tree.Nearest(word, slices.Sorted(maps.Keys(known))); near != "" {
		return "did you mean " + near + "?"
	}
	return otherwise
}
