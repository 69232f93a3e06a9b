-- algo/lease_rolling.go. The ring of the exact record has the units charged to the newest
-- bucket and before; lease.c those charged to buckets after it, lease.f those that may not be
-- used before a bucket. lease.top is the last bucket of both.

local function chargedLent(g, s, j)
  if j * g.width <= s.at then return word(s, j % g.size) end
  return s.lease.c[j] or 0
end

local function chargeLent(g, s, j, units)
  if units == 0 then return end
  if j * g.width <= s.at then
    local i = j % g.size
    local have = word(s, i)
    units = min(units, SLOT - have)
    s.ring = splice(s.ring, i, pack('<I4', have + units))
    s.a = s.a + units
  else
    local l = s.lease
    l.c[j], l.top = min(SLOT, (l.c[j] or 0) + units), max(l.top, j)
  end
end

-- advanceLent makes the bucket of now the newest, and returns it.
local function advanceLent(g, s, now)
  if not s.ring then s.ring = rep('\0', 4 * g.size) end
  local l, was, is = s.lease, s.at / g.width, floor(now / g.width)
  if is <= was then return was end
  local n = min(is - was, g.size)
  local first = is - n + 1
  local gone = slice(g, s, first, n)
  for k = 1, n do s.a = s.a - gone[k] + (l.c[first + k - 1] or 0) end
  local due, i = words(l.c, first, is), first % g.size
  local fit = min(n, g.size - i)
  s.ring = splice(s.ring, i, sub(due, 1, 4 * fit))
  if fit < n then s.ring = splice(s.ring, 0, sub(due, 4 * fit + 1)) end
  for j = was + 1, min(is, l.top) do l.c[j], l.f[j] = nil, nil end
  s.at = is * g.width
  return is
end

-- outlook is, for each bucket from the newest on, what may be granted from there on, what
-- is released there, and how far it looked.
local function outlook(g, s, newest, horizon)
  local l, used, later, far = s.lease, s.a, 0, horizon
  for j = newest + 1, l.top do
    used = used + (l.c[j] or 0)
    local f = l.f[j]
    if f then later, far = later + f, max(far, j - newest) end
  end
  local room = g.count - used + later
  local free, release = {[0] = room}, slice(g, s, newest + 1, far)
  for k = 1, far do
    room = room + release[k] - (l.f[newest + k] or 0)
    free[k] = room
  end
  for k = far - 1, 0, -1 do free[k] = min(free[k], free[k + 1]) end
  return free, release, far
end

local function settleLent(g, s, newest, now, a)
  if now < a.past then return end
  local first, last = max(newest - g.buckets, s.lease.closed + 1), newest + g.buckets
  for i = 1, #a.settle, 2 do
    local j = a.settle[i]
    if j >= first and j <= last then chargeLent(g, s, j, -min(max(0, a.settle[i + 1]), chargedLent(g, s, j))) end
  end
  for i = 1, #a.used, 2 do
    local j = a.used[i]
    if j >= first and j <= last then chargeLent(g, s, j, min(max(0, a.used[i + 1]), SLOT - chargedLent(g, s, j))) end
  end
end

-- shares divides a need over the buckets up to the horizon.
local function shares(g, a, newest, horizon, free, release, by)
  local want = min(max(0, a.want), g.count)
  local base = min(max(a.base, -g.count), want)
  local rate, sum, span = by.rate, max(1, by.sum), want - base
  local need, x, carry = {}, {}, min(max(0, a.carry), 999)
  local owed, ahead, short, released = carry, 0, base, 0
  for k = 1, horizon do
    local c = base + floor(span * k / horizon)
    need[k], x[k] = c, 0
    if newest + k > a.upto and want > 0 then
      released = released + release[k]
      local mine = thousandths(min(released, SLOT), rate, sum) + owed
      carry = mine % 1000
      local due = min(floor(mine / 1000), c, free[k])
      if due > ahead then x[k], ahead = due - ahead, due end
    end
    if c - ahead > short then short = c - ahead end
  end
  if by.sum > 0 then
    short = max(short, min(want, floor(portion(max(0, free[0]), rate, by.sum) * 3 / 4)))
  end
  local first = quota(g, short, free[0], a.have, by)
  x[0] = first
  local given = first
  for k = 1, horizon do
    if x[k] > 0 then
      x[k] = min(x[k], max(0, min(free[k], max(need[k], first)) - given))
      given = given + x[k]
    end
  end
  return x, carry, given
end

local function freeAfter(g, s, newest, free, far, given)
  local k = 1
  while k <= far and free[k] - given <= 0 do k = k + 1 end
  local last = free[far] - given
  while last <= 0 and k <= g.buckets do
    last = last + word(s, (newest + k) % g.size)
    if last > 0 then break end
    k = k + 1
  end
  return (newest + k) * g.width
end

-- lendRolling answers: at, admitted, epoch, instances, share, available, free, upto, carry, the
-- newest bucket, how many buckets from there on have units, and those of each.
local function lendRolling(g, s, now, a)
  local l = s.lease
  local lost = a.exact > 0 and 0 or missing(l, a)
  now = max(now, l.last)
  local newest = advanceLent(g, s, now)
  l.last, a.lost = now, lost
  if a.exact > 0 then
    local free, _, far = outlook(g, s, newest, 1)
    local ok, given = 0, 0
    if a.exact <= free[0] then
      ok, given = 1, a.exact
      chargeLent(g, s, newest, given)
    end
    local available, again = max(0, free[0] - given), 0
    if available == 0 then again = freeAfter(g, s, newest, free, far, given) end
    return {now, ok, 0, 0, 0, available, again, 0, 0, 0, 0}
  end
  local horizon = min(max(1, a.horizon), g.buckets)
  if lost > 0 and g.fence then
    chargeLent(g, s, newest + horizon, max(0, g.count - chargedLent(g, s, newest + horizon)))
  end
  settleLent(g, s, newest, now, a)
  local by = register(g, l, now, a)
  local free, release, far = outlook(g, s, newest, horizon)
  local x, carry, given = shares(g, a, newest, horizon, free, release, by)
  local expiry, last = newest + horizon, horizon
  while last >= 0 and x[last] == 0 do last = last - 1 end
  local out = {now, 0, l.epoch, by.n, millionths(by.rate, by.sum), max(0, free[0] - x[0]), 0, expiry, carry, newest, last + 1}
  for k = 0, last do
    local units = x[k]
    out[12 + k] = units
    if k > 0 and units > 0 then
      local j = newest + k
      l.f[j], l.top = min(SLOT, (l.f[j] or 0) + units), max(l.top, j)
    end
  end
  chargeLent(g, s, expiry, given)
  a.given = given
  if out[6] == 0 then out[7] = freeAfter(g, s, newest, free, far, given) end
  return out
end
