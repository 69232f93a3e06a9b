-- Quota in advance. ARGV: see args.lua; a plan is followed by the interval, the width and the number
-- of the buckets of a rolling window or of time, and whether it has a fence. Of each key: its plan, exact, rate,
-- epoch, lastRate, want, have, ver; of a fixed window the window, what is given back, what was spent, wantNext, haveNext; of a
-- rolling one or a token bucket past, base, horizon, upto, carry, and how many numbers of settle and they, of used
-- and they. Reply: raw, now, of each key 1 and its answer, the version and what is lost; or why it was
-- not run and a detail.

local known = readPlans(function(p)
  local interval, width, buckets, fence = number(), number(), number(), number() == 1
  if width == 0 then
    p.lent, p.interval, p.fence = p, interval, fence
    return
  end
  if p.kind == 'b' then
    p.lent = p
    p.interval, p.width, p.buckets, p.fence = interval, width, buckets, fence
    return
  end
  p.lent = {per = p.per, width = width, buckets = buckets, size = buckets + 1, count = p.count, interval = interval, fence = fence,
    text = format('r %.0f %.0f %.0f', p.per, width, buckets)}
end)

local function list()
  local all = {}
  for i = 1, number() do all[i] = number() end
  return all
end

local function readAsk(p)
  local a = {exact = number(), rate = number(), epoch = number(), lastRate = number(), want = number(), have = number(), ver = number()}
  if p.lent == p and not p.width then
    a.window, a.back, a.spent, a.wantNext, a.haveNext = number(), number(), number(), number(), number()
  else
    a.past, a.base, a.horizon, a.upto, a.carry = number(), number(), number(), number(), number()
    a.settle, a.used = list(), list()
  end
  return a
end

-- intoRing makes buckets of a log of instants.
local function intoRing(g, s)
  local newest, count, total = floor(s.at / g.width), {}, 0
  for i = 0, s.a - 1 do
    local j = floor(entry(s, i) / g.width)
    if j >= newest - g.buckets then count[j % g.size], total = (count[j % g.size] or 0) + 1, total + 1 end
  end
  s.at, s.a, s.ring, s.text = newest * g.width, total, words(count, 0, g.size - 1), g.text
end

-- reshape is a lent rolling window in other buckets: all that counts is charged to the last one
-- that any of it may be used in.
local function reshape(g, s, now)
  local l, old = s.lease, shape(s.text)
  local newest = advanceLent(old, s, max(now, l.last))
  local units, last = s.a, (max(newest, l.top) + 1) * old.width - 1
  for _, c in pairs(l.c) do units = units + c end
  local to = lease(l.last)
  to.ver = l.ver
  to.closed = floor(max(now, l.last) / g.width) + g.buckets
  s.lease, s.at, s.a, s.ring, s.text = to, 0, 0, nil, g.text
  advanceLent(g, s, max(now, l.last))
  chargeLent(g, s, floor(last / g.width), min(units, SLOT))
end

-- lendLevel makes a lent state of a record, for a bucket.
local function lendLevel(g, s)
  local l = s.lease
  if l and l.width and s.text == g.text and l.width == g.width then return end
  local last, closed, top, out = s.at, 0, 0, 0
  if l and l.width then
    local at = max(now, l.last)
    forwardLent(foreign(s.text), s, at)
    gather(g, s)
    last, out = l.last, l.c[l.top]
    top = min(floor(((l.top + 1) * l.width - 1) / g.width), floor(at / g.width) + g.buckets)
  end
  local other = s.text ~= g.text
  if other then adopt(g, s, now) end
  if other then last = max(last, s.at) end
  if other or l then closed = floor(max(now, last) / g.width) + g.buckets end
  s.lease = lease(last)
  s.lease.width, s.lease.closed, s.lease.ver = g.width, closed, l and l.width and l.ver or 0
  if out > 0 then s.lease.c[top], s.lease.top = out, top end
end

-- lend makes a lent state of a record. Nothing that was handed out before a record was of
-- another kind is taken back: it may have been forgotten by then.
local function lend(p, s)
  local g = p.lent
  if g.kind == 'b' then return lendLevel(g, s) end
  if s.text == g.text and s.lease then return end
  if s.lease and s.ring and g ~= p and shape(s.text).per == g.per then return reshape(g, s, now) end
  local last, closed = s.at, 0
  if s.text ~= g.text and s.text ~= p.text then
    local old = foreign(s.text)
    local same = g ~= p and not s.lease and (old.kind == 's' or old.kind == 'r' or old.kind == 'l') and old.per == p.per
    if not (same and old.kind == 'l') then
      local seen = s.seen
      adopt(p, s, now)
      last = s.at
      if same then s.seen = seen end
      if not same then closed = g == p and floor(now / g.per) or floor(now / g.width) + g.buckets end
    end
  end
  if s.text ~= g.text then intoRing(g, s) end
  s.lease = lease(last)
  s.lease.closed = closed
end

local states = {}
for i = 1, #KEYS do
  local p = known[number()]
  local a, g = readAsk(p), p.lent
  local s, why, detail = load(KEYS[i], p)
  if not s then
    out[n + 1], out[n + 2] = why, detail
    n = n + 2
  else
    lend(p, s)
    out[n + 1] = 1
    if g == p and not g.width then
      out[n + 2], out[n + 3], out[n + 4], out[n + 5], out[n + 6], out[n + 7], out[n + 8], out[n + 9], out[n + 10], out[n + 11] = lendFixed(g, s, now, a)
      n = n + 11
    else
      local answer = (g == p and lendBucket or lendRolling)(g, s, now, a)
      for k = 1, #answer do out[n + 1 + k] = answer[k] end
      n = n + 1 + #answer
    end
    local l = s.lease
    if a.exact > 0 then
      out[n + 1], out[n + 2] = 0, 0
    else
      l.ver = min(MAX, l.ver + 1 + a.given)
      out[n + 1], out[n + 2] = l.ver, a.lost
    end
    n = n + 2
    l.idle = max((l.epoch + 2) * 2 * g.interval, (l.closed + 1) * (g.width or g.per))
    s.plan, states[i] = p, s
  end
end
for i, s in pairs(states) do write(KEYS[i], s, s.plan, now, margin) end
return out
