package config

import (
	"maps"
	"net"
	"net/url"
	"slices"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/config/limitcount"
	"github.com/escapement-io/escapement/internal/config/tree"
)

// readStores reads the shared stores that limits refer to by name.
func (b *builder) readStores(v tree.Value) {
	entries, _ := v.Entries(100)
	for _, e := range entries {
		b.stores[e.Name] = true
		o, ok := e.Object()
		if !ok {
			continue
		}
		kind, typed := o.Need("type", "write type: redis")
		if typed {
			_, typed = kind.OneOf("redis")
		}
		ways := 0
		if v, ok := o.Get("url"); ok {
			ways++
			b.redisURL(v)
		}
		if v, ok := o.Get("cluster"); ok {
			ways++
			addresses(v)
		}
		if v, ok := o.Get("sentinel"); ok {
			ways++
			readSentinel(v)
		}
		if ways != 1 {
			o.Fail("a store is reached in exactly one way", "write one of url, cluster or sentinel")
		}
		for _, key := range []string{"username", "password"} {
			if v, ok := o.Get(key); ok {
				b.secret(v)
			}
		}
		if v, ok := o.Get("timeout"); ok {
			v.Duration(time.Millisecond, time.Minute)
		}
		o.Done()
		if typed {
			limitcount.RefuseShared(kind, "a shared store")
		}
	}
}

// redisURL checks redis://host:port/db, also rediss:// and unix://.
func (b *builder) redisURL(v tree.Value) {
	s, ok := b.secret(v)
	if !ok {
		return
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix" || u.Host == "" && u.Path == "" {
		v.Fail("not the URL of a Redis server", "write redis://HOST:PORT/DB, rediss:// for TLS, or unix:///PATH")
	}
}

func addresses(v tree.Value) {
	for _, item := range v.Texts(1000) {
		s, _ := item.Text()
		if _, port, err := net.SplitHostPort(s); err != nil || port == "" {
			item.Fail(item.Quote()+" is not host:port", "write an address and a port, such as 10.0.0.1:6379")
		}
	}
}

func readSentinel(v tree.Value) {
	o, ok := v.Object()
	if !ok {
		return
	}
	if v, ok := o.Need("master", "write the name under which the sentinels know it"); ok {
		v.Text()
	}
	if v, ok := o.Need("addresses", "list the sentinels as host:port"); ok {
		addresses(v)
	}
	o.Done()
}

// storeUse is where a limit's state lives and how instances agree on it.
type storeUse struct {
	name     string
	interval time.Duration // between synchronisations; zero: every request asks
	delayed  bool
}

// readStoreUse reads store, sync and on_failure of a limit.
func (b *builder) readStoreUse(o *tree.Object, l *Limit) storeUse {
	var use storeUse
	if v, ok := o.Get("store"); ok {
		if use.name, ok = v.Text(); ok && !b.stores[use.name] {
			v.Fail("there is no store "+v.Quote(), nearestHint(use.name, b.stores, "define it under stores"))
		}
	}
	if v, ok := o.Get("sync"); ok {
		readSync(v, l, &use)
		if use.name == "" && !o.Has("store") {
			v.Fail("sync without a store: there is nobody to agree with", "add store: NAME, or remove sync")
		}
	}
	if v, ok := o.Get("on_failure"); ok {
		if s, ok := v.OneOf("deny", "allow", "local_share"); ok {
			l.OnFailure, _ = escapement.ParseOnFailure(s)
		}
	}
	return use
}

func readSync(v tree.Value, l *Limit, use *storeUse) {
	o, ok := v.Object()
	if !ok {
		return
	}
	if v, ok := o.Need("interval", "write how often instances agree, such as interval: 200ms"); ok {
		if d, ok := v.Duration(time.Millisecond, time.Hour); ok {
			use.interval = d
			if l.Rate.Per > 0 && d >= l.Rate.Per {
				v.Fail("the interval is not below the period of the limit", "agree several times in a period; 5 % of it is a good start")
			}
		}
	}
	if v, ok := o.Get("mode"); ok {
		if s, ok := v.OneOf("lease", "delayed"); ok {
			use.delayed = s == "delayed"
		}
	}
	o.Done()
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
