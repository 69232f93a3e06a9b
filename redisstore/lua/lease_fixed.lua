-- algo/lease.go and algo/lease_fixed.go: at is the start of the window, a the units
-- charged to it, lease.next those of the one after it.

local HOLDERS = 100000

-- rollLent brings a lent fixed window to now, and returns the instant that counts.
local function rollLent(per, s, now)
  local l = s.lease
  now = max(now, l.last)
  local start = now - now % per
  if start == s.at + per then
    s.a, l.next = l.next, 0
  elseif start > s.at then
    s.a, l.next = 0, 0
  end
  s.at = max(s.at, start)
  return now
end

local function millionths(rate, sum)
  if sum <= 0 then return 1000000 end
  while rate > floor(MAX / 1000000) do rate, sum = floor(rate / 1024), floor(sum / 1024) end
  return floor(rate * 1000000 / sum)
end

local function portion(x, rate, sum)
  if rate == 0 or x <= floor(MAX / rate) then return floor(x * rate / sum) end
  return floor(x * millionths(rate, sum) / 1000000)
end

local function thousandths(x, rate, sum)
  if rate == 0 or 1000 * x <= floor(MAX / rate) then return floor(1000 * x * rate / sum) end
  return floor(x * millionths(rate, sum) / 1000)
end

-- register takes in an ask; it returns by what demand quota is divided.
local function register(g, l, now, a)
  local rate = min(max(0, a.rate), 10 * g.count)
  local epoch = floor(now / (2 * g.interval))
  if epoch ~= l.epoch then
    l.lastNumber, l.lastRate = 0, 0
    if epoch == l.epoch + 1 then l.lastNumber, l.lastRate = l.number, l.rate end
    l.epoch, l.number, l.rate = epoch, 0, 0
  end
  if a.epoch == epoch then
    l.rate = max(0, l.rate + rate - min(max(0, a.lastRate), 10 * g.count))
  elseif l.number < HOLDERS then
    l.number, l.rate = l.number + 1, l.rate + rate
  end
  local n, sum = l.lastNumber, l.lastRate
  if l.number >= n then n, sum = l.number, l.rate end
  return {n = max(1, n), rate = rate, sum = max(rate, sum), last = l.lastNumber}
end

local function quota(g, want, available, have, by)
  if want <= 0 or available <= 0 then return 0 end
  local entitled = floor(g.count / by.n)
  if by.last > 0 and by.sum > 0 then entitled = portion(g.count, by.rate, by.sum) end
  return min(want, available, max(entitled - have, ceilDiv(available, by.n)))
end

-- missing is by how much a record is behind what the holder saw: algo/lease_lost.go. One from
-- before there were versions is behind nothing, unless there is none.
local function missing(l, a)
  local lost = 0
  if a.ver > l.ver and (l.ver > 0 or l.last == 0) then lost = a.ver - l.ver end
  l.ver = max(l.ver, a.ver)
  return lost
end

-- lendFixed answers: at, admitted, epoch, instances, share, available, free, window, units, next.
local function lendFixed(g, s, now, a)
  local l = s.lease
  local lost = a.exact > 0 and 0 or missing(l, a)
  now = rollLent(g.per, s, now)
  l.last, a.lost = now, lost
  local w = s.at / g.per
  local free = (w + 1) * g.per
  if a.exact > 0 then
    local ok = 0
    if a.exact <= g.count - s.a then ok, s.a = 1, s.a + a.exact end
    return now, ok, 0, 0, 0, max(0, g.count - s.a), free, w, 0, 0
  end
  if lost > 0 and g.fence then
    s.a = max(s.a, g.count)
    if free - now <= 2 * g.interval then l.next = max(l.next, g.count) end
  end
  local by = register(g, l, now, a)
  local want, have, wantNext, haveNext = a.want, a.have, a.wantNext, a.haveNext
  if a.window == w then
    if w > l.closed then s.a = s.a - min(max(0, a.back), s.a) end
    s.a = s.a + min(max(0, a.spent), MAX - s.a)
  elseif a.window == w - 1 and a.window >= 0 then
    want, have, wantNext, haveNext = wantNext, haveNext, 0, 0
  else
    have, haveNext = 0, 0
  end
  local units = quota(g, want, g.count - s.a, have, by)
  s.a = s.a + units
  local ahead = quota(g, wantNext, g.count - l.next, haveNext, by)
  l.next, a.given = l.next + ahead, units + ahead
  return now, 0, l.epoch, by.n, millionths(by.rate, by.sum), max(0, g.count - s.a), free, w, units, ahead
end
