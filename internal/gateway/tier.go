package gateway

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/batch"
	"github.com/escapement-io/escapement/internal/config"
	"github.com/escapement-io/escapement/internal/ledgers"
	"github.com/escapement-io/escapement/lease"
	"github.com/escapement-io/escapement/redisstore"
)

// tiers are an open store with the ledgers before it: claims of limits that are reported
// later end in reports, of those that are handed out in advance in leases, all others at
// the store.
type tiers struct {
	redis   *redisstore.Store
	leases  *lease.Store
	reports *batch.Store
}

// farewell is how long a shutdown may take to report and give back what is held.
const farewell = 2 * time.Second

func (s *shared) newTiers(store *redisstore.Store) *tiers {
	// A request waits as long as an exact one would: if it gave up sooner, a store that is
	// slow would do its work for nobody.
	wait := cmp.Or(s.spec.Deadline, config.StoreDeadline)
	opts := ledgers.Options{Instances: s.instances, Phase: s.phase, MaxWait: wait, Deadline: max(wait, ledgers.DefaultDeadline)}
	if s.maxKeys > 0 {
		opts.MaxKeys = min(s.maxKeys, ledgers.DefaultMaxKeys)
	}
	leases := lease.NewStore(store, store, opts)
	return &tiers{store, leases, batch.NewStore(store, leases, opts)}
}

// Decide asks the first of them; each hands on what is not its own.
func (t *tiers) Decide(ctx context.Context, requests []escapement.Request, answers []escapement.Answer) {
	t.reports.Decide(ctx, requests, answers)
}

// Close says what is to be said, and ends the connections.
func (t *tiers) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	return errors.Join(t.reports.Close(ctx), t.leases.Close(ctx), t.redis.Close())
}

// sync is what /v1/limits shows of the ledgers that are in use.
func (t *tiers) sync() (all []SyncStatus) {
	for _, one := range []struct {
		mode escapement.SyncMode
		snap ledgers.Snapshot
	}{{escapement.SyncLease, t.leases.Snapshot()}, {escapement.SyncDelayed, t.reports.Snapshot()}} {
		if len(one.snap.Limits) == 0 {
			continue
		}
		st := SyncStatus{Mode: one.mode.String(), Keys: one.snap.Syncing, Calls: uint64(one.snap.Calls), Failed: uint64(one.snap.FailedCalls), Refused: one.snap.Full}
		for i := range one.snap.Limits {
			l := &one.snap.Limits[i]
			st.Interval = max(st.Interval, l.Interval)
			if st.Overshoot == nil {
				st.Overshoot = map[string]int64{}
			}
			st.Overshoot[l.Name] = max(0, l.Over)
			if l.Lost > 0 {
				if st.Lost == nil {
					st.Lost = map[string]int64{}
				}
				st.Lost[l.Name] = l.Lost
			}
		}
		all = append(all, st)
	}
	return all
}
