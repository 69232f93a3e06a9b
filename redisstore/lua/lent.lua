-- Exact claims on a record of which quota is lent. A fixed window is brought to now and
-- judged as any other. A rolling one is judged by the rule of its lease, whichever plan of the
-- same period asks: rolling in either form, or sliding, which promises less. A token bucket is
-- judged as any other, by the level that its lease leaves.

-- rolls reports whether a plan's claims are judged on the lent rolling window of a record.
local function rolls(p, s)
  return s.lease and s.ring and (p.kind == 'r' or p.kind == 'l' or p.kind == 's') and p.per == shape(s.text).per
end

-- lent brings what a record has besides its state to now, and drops what means nothing more. It
-- reports whether the state can be judged under a plan as it is.
local function lent(p, s, now)
  local l, d = s.lease, s.seen
  if d and now >= d.idle then s.seen = nil end
  if l and s.ring then
    local newest = advanceLent(shape(s.text), s, max(now, l.last))
    if l.top <= newest and now >= l.idle then s.lease = nil end
  elseif l and l.width then
    if s.text ~= p.text then
      local n, unit, full, tick = match(s.text, '^b (%d+) (%d+) (%d+) (%d+)$')
      local old = bucketPlan({n + 0, unit + 0, full + 0, tick + 0})
      unlevel(s, old.p)
      forwardLent(old, s, max(now, l.last))
    elseif level(p, s, now) and now >= l.idle then
      s.lease = nil
    end
  elseif l then
    rollLent(match(s.text, '%d+') + 0, s, now)
    if l.next == 0 and now >= l.idle then s.lease = nil end
  end
  s.rolls = rolls(p, s)
  return s.text == p.text or s.rolls
end

-- flatten makes a plain state of a lent one, for a plan of another kind: all that is lent counts.
local function flatten(p, s)
  local l, g = s.lease, s.ring and shape(s.text)
  if not l then return end
  if l.width and p.kind == 'b' then return gather(p, s) end
  if g then
    local i, units = s.at / g.width % g.size, 0
    for _, c in pairs(l.c) do units = units + c end
    units = min(units, SLOT - word(s, i))
    s.ring, s.a = splice(s.ring, i, pack('<I4', word(s, i) + units)), s.a + units
  elseif not l.width then
    s.a = min(MAX, s.a + l.next)
  end
  s.lease, s.rolls = nil, nil
end

-- own is the window of the record with the plan's count.
local function own(p, s)
  local g = shape(s.text)
  if not p.own or p.own.width ~= g.width or p.own.per ~= g.per then
    p.own = {per = g.per, width = g.width, buckets = g.buckets, size = g.size, count = p.count}
  end
  return p.own
end

local function lookLent(p, s, now, cost)
  local g = own(p, s)
  now = max(now, s.lease.last)
  local newest = advanceLent(g, s, now)
  local free, _, far = outlook(g, s, newest, 1)
  local last, when = max(newest, s.lease.top), 0
  local j = last
  while j >= newest - g.buckets and chargedLent(g, s, j) == 0 do j = j - 1 end
  if j >= newest - g.buckets then when = (j + g.size) * g.width end
  local used = g.count - free[0]
  if cost <= free[0] or cost == 0 then return true, used, 0, when end
  if cost > g.count then return false, used, 0, when end
  local k = 1
  while k <= far and free[k] < cost do k = k + 1 end
  local room = free[far]
  while room < cost and k <= last - newest + g.size do
    room = room + chargedLent(g, s, newest + k - g.size)
    if room >= cost then break end
    k = k + 1
  end
  return false, used, (newest + k) * g.width - now, when
end

local function takeLent(p, s, now, cost)
  local ok, used, wait, free = lookLent(p, s, now, cost)
  if ok and cost > 0 then
    local g = own(p, s)
    chargeLent(g, s, s.at / g.width, cost)
    s.dirty, used, free = true, used + cost, max(free, s.at + g.size * g.width)
  end
  return ok, used, wait, free
end

-- moveLent charges units, or gives them back if they are negative, in the bucket of stamp.
local function moveLent(p, s, now, stamp, units)
  local g = own(p, s)
  local newest = advanceLent(g, s, max(now, s.lease.last))
  local j = min(newest, floor(stamp / g.width))
  if j < newest - g.buckets then return 0 end
  local have = chargedLent(g, s, j)
  if units < 0 then units = max(units, -have) else units = min(units, SLOT - have) end
  if units ~= 0 then
    chargeLent(g, s, j, units)
    s.dirty = true
  end
  return max(units, -units)
end

-- show is the words of a state that a sliding window can be judged by as it is judged here.
local function show(p, s, now)
  local _, used = lookLent(p, s, now, 0)
  now = max(now, s.lease.last)
  return now - now % p.per, max(0, used), 0
end
