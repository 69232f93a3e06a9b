variants={
 'base':[], 'inst':['inst'], 'check':['check'], 'lim':['lim'], 'rul':['rul'],'tag':['tag'],'ok':['ok'], 'all':['inst','check','lim','rul','tag','ok'], 'nolim':['inst','check','rul','tag','ok'],'notag':['inst','check','lim','rul','ok']
}
out='''package memstore
import ("context";"testing"; "github.com/escapement-io/escapement")
'''
for n,f in variants.items():
    out+=f'''
//go:noinline
func (s *Store) v{n}(c *escapement.Claim, l *limit) bool {{
	{'if err := check(c); err != nil { return false }' if 'check' in f else ''}
	{'l = s.limitOf(c.Plan)' if 'lim' in f else ''}
	h := s.hash(l, c.Key)
	sh := s.shard(h)
	sh.mu.Lock()
	now := {'sh.instant(s.now())' if 'inst' in f else 's.now()'}
	p := {'l.ruling(c.Plan)' if 'rul' in f else 'c.Plan'}
	i, ok := sh.find(h)
	_ = ok
	{'if !ok {return false}' if 'ok' in f else ''}
	sl := &sh.slots[i]
	{'if sl.tag() != l.newest.id {return false}' if 'tag' in f else ''}
	st := sl.state()
	v := p.Core().Take(&st, now, c.Cost)
	if v.Admitted {{
		sl.put(&st, l.newest.id)
	}}
	sh.mu.Unlock()
	return v.Admitted
}}
'''
out+='''
func BenchmarkTmp(b *testing.B){
		keys := keys16(liveKeys)
		floor := newMapStore()
		s := newStore(b)
		live := compile(b, escapement.Limit{Name: "live", Rate: escapement.PerHour(1000), Burst: 1_000_000})
		for _, k := range keys {
			floor.take(k)
			s.DecideOne(context.Background(), escapement.Claim{Plan: live, Key: k, Cost: 1})
		}
		l := s.limitOf(live)
			seq := draws(keys, false)
				at := 0
				ratios(b, []string{"map", '''+','.join(f'"{n}"' for n in variants)+'''}, []func(n int){
					func(n int) {
						for range n {
							floor.take(seq[at&(1<<20-1)])
							at++
						}
					},
'''
for n in variants:
    out+=f'''					func(n int) {{
						for range n {{
							s.v{n}(&escapement.Claim{{Plan: live, Key: seq[at&(1<<20-1)], Cost: 1}}, l)
							at++
						}}
					}},
'''
out+='''				})
}
'''
open('tmp_test.go','w').write(out)
