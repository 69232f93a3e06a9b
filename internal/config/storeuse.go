package config

import (
	"fmt"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/fallback"
	"github.com/escapement-io/escapement/internal/config/tree"
)

// readStoreUse reads store, sync and on_failure of a limit.
func (b *builder) readStoreUse(o *tree.Object, l *Limit) {
	if v, ok := o.Get("store"); ok {
		if name, ok := v.Text(); ok {
			s, known := b.stores[name]
			if !known {
				v.Fail("there is no store "+v.Quote(), nearestHint(name, b.stores, "define it under stores"))
			}
			if s != nil {
				l.Store = b.addStore(s, v)
			}
			l.OnFailure = escapement.LocalShare
		}
	}
	if v, ok := o.Get("sync"); ok {
		readSync(v, l)
		if !o.Has("store") {
			v.Fail("sync without a store: there is nobody to agree with", "add store: NAME, or remove sync")
		}
	}
	if v, ok := o.Get("on_failure"); ok {
		if s, ok := v.OneOf("deny", "allow", "local_share"); ok {
			l.OnFailure, _ = escapement.ParseOnFailure(s)
		}
	}
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
