-- algo/lease_bucket.go. lease.width is that of its buckets of time, lease.c the units out by the
-- last of them that they may be used in, lease.f those that may not be used before one; lease.top
-- is the last bucket of both. a is never below what is out.

local function fill(p, s, now, out)
  local at, a = backlog(p, s, now)
  s.at, s.a = at, max(a, out * p.p)
end

-- forwardLent brings the record to now. It returns the bucket of now, what is out and what of
-- it is promised for later.
local function forwardLent(p, s, now)
  local l = s.lease
  local width, c, f = l.width, l.c, l.f
  local was, is, out, later = floor(l.last / width), floor(now / width), 0, 0
  for j = was, l.top do out, later = out + (c[j] or 0), later + (f[j] or 0) end
  for j = was, min(is - 1, l.top) do
    local over = c[j]
    if over then
      fill(p, s, (j + 1) * width, out)
      out, c[j] = out - over, nil
    end
    later, f[j + 1] = later - (f[j + 1] or 0), nil
  end
  fill(p, s, now, out)
  l.last = now
  return is, out, later
end

-- prospect is, in credits, what the level comes to for use from each bucket on, up to a
-- horizon or the furthest promise, how far that is, and what comes back until each begins.
local function prospect(p, s, newest, horizon, out, later)
  local l, far = s.lease, horizon
  local f = l.f
  for j = newest + horizon + 1, l.top do
    if f[j] then far = j - newest end
  end
  local level, most, long = p.full - s.a, MAX - p.full, floor(MAX / p.n)
  local room, back = {[0] = level + min(later, out) * p.p}, {[0] = 0}
  for k = 1, far do
    local ticks, credits = max(0, floor(((newest + k) * l.width - s.at) / p.tick)), most
    if ticks <= long then credits = min(ticks * p.n, most) end
    later = later - (f[newest + k] or 0)
    room[k], back[k] = level + credits + min(later, out) * p.p, credits
  end
  for k = far - 1, 0, -1 do room[k] = min(room[k], room[k + 1]) end
  return room, far, back
end

local function report(p, s, newest, buckets, out, a)
  local l, settled, late = s.lease, 0, 0
  if l.last < a.past then return out end
  local c, first, last = l.c, max(newest, l.closed + 1), newest + buckets
  for i = 1, #a.settle, 2 do
    local j, units = a.settle[i], max(0, a.settle[i + 1])
    if j < first or j > last then
      late = min(MAX, late + units)
    else
      units = min(units, c[j] or 0)
      if units > 0 then c[j] = c[j] - units end
      settled = settled + units
    end
  end
  out = out - settled
  for i = 1, #a.used, 2 do
    local j, units = a.used[i], max(0, a.used[i + 1])
    local known = min(units, settled)
    settled = settled - known
    if known > 0 and j >= newest and j <= last then
      c[j], l.top, out = (c[j] or 0) + known, max(l.top, j), out + known
    end
    units = units - known
    known = min(units, late)
    late = late - known
    s.a = s.a + min(units - known, floor((MAX - s.a) / p.p)) * p.p
  end
  s.a = s.a - settled * p.p
  return out
end

-- again is when there may be something, later being promised once given is.
local function again(g, s, newest, free, far, given, later)
  if later > 0 then
    for k = 1, far do
      if free[k] > given then return (newest + k) * g.width end
    end
  end
  local l = s.lease
  local wait = drain(g, s.at, l.last, s.a - g.full + g.p)
  local at = wait == math.huge and INSTANT or l.last + wait
  if later > 0 then at = max(at, (newest + far + 1) * g.width) end
  return at
end

-- lendBucket answers as lendRolling does.
local function lendBucket(g, s, now, a)
  local l = s.lease
  local lost = a.exact > 0 and 0 or missing(l, a)
  local newest, out, later = forwardLent(g, s, max(now, l.last))
  now, a.lost = l.last, lost
  local horizon = a.exact > 0 and 1 or min(max(1, a.horizon), g.buckets)
  local expiry = newest + min(2 * horizon, g.buckets)
  if a.exact == 0 then out = report(g, s, newest, g.buckets, out, a) end
  local most = a.exact > 0 and g.count or g.count - out
  local free, far, back = prospect(g, s, newest, horizon, out, later)
  for k = 0, far do free[k] = min(most, floor(max(0, free[k]) / g.p)) end
  if a.exact > 0 then
    local ok, given = 0, 0
    if a.exact <= free[0] then
      ok, given = 1, a.exact
      s.a = s.a + given * g.p
    end
    local available, when = max(0, free[0] - given), 0
    if available == 0 then when = again(g, s, newest, free, far, given, later) end
    return {now, ok, 0, 0, 0, available, when, 0, 0, 0, 0}
  end
  local release, before = {}, 0
  for k = 1, horizon do
    local units = floor(back[k] / g.p)
    release[k], before = units - before, units
  end
  local by = register(g, l, now, a)
  local x, carry, given = shares(g, a, newest, horizon, free, release, by)
  local last = horizon
  while last >= 0 and x[last] == 0 do last = last - 1 end
  local answer = {now, 0, l.epoch, by.n, millionths(by.rate, by.sum), max(0, free[0] - x[0]), 0, newest + horizon, carry, newest, last + 1}
  for k = 0, last do
    local units = x[k]
    answer[12 + k] = units
    if k > 0 and units > 0 then
      local j = newest + k
      l.f[j], later = (l.f[j] or 0) + units, later + units
    end
  end
  s.a = s.a + given * g.p
  if given > 0 then l.c[expiry], l.top = (l.c[expiry] or 0) + given, max(l.top, expiry) end
  a.given = given
  if answer[6] == 0 then answer[7] = again(g, s, newest, free, far, given, later) end
  return answer
end

-- level makes a of a lent bucket what a plain one has that admits the same now; unlevel makes it
-- what it was, and what has been taken since is taken. It reports whether nothing is out.
local function level(p, s, now)
  local l = s.lease
  unlevel(s, p.p)
  local newest, out, later = forwardLent(p, s, max(now, l.last))
  local room = prospect(p, s, newest, 1, out, later)
  l.out, l.apart = out, p.full - room[0] - s.a
  s.a = s.a + l.apart
  return out == 0
end

-- gather makes one promise of all that is out, for another definition of the bucket.
local function gather(p, s)
  local l, out = s.lease, 0
  for _, c in pairs(l.c) do out = out + c end
  l.c, l.f, l.closed = {[l.top] = min(out, p.count)}, {}, max(l.closed, l.top)
end
