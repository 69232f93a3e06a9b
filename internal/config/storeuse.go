package config

import (
	"fmt"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/fallback"
	"github.com/escapement-io/escapement/internal/config/tree"
)

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
		if use.name, ok = v.Text(); ok {
			s, known := b.stores[use.name]
			if !known {
				v.Fail("there is no store "+v.Quote(), nearestHint(use.name, b.stores, "define it under stores"))
			}
			if s != nil {
				l.Store = b.addStore(s, v)
			}
			l.OnFailure = escapement.LocalShare
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

// adviseShare warns where the share of an instance is nothing, so that local_share denies.
func adviseShare(o *tree.Object, l *Limit) {
	if l.Store == nil || l.OnFailure != escapement.LocalShare {
		return
	}
	at := o.At("store")
	if o.Has("on_failure") {
		at = o.At("on_failure")
	}
	if n := int64(l.Store.Instances); n > 0 && fallback.Share(l.Limit, n) == nil {
		at.Warn(fmt.Sprintf("the share of one of %d instances is nothing, so while the store is away local_share denies", n),
			"write on_failure: deny or allow, or raise the limit")
	}
}
