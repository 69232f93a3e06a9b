-- rolling_window above 64: ring counts what was taken per bucket, one little-endian
-- 32-bit word each, bucket k at k mod (buckets+1). at is the start of the newest bucket,
-- a the total. Plan: per width buckets count. Besides the state a ring returns its
-- verdict, since it is too long to send: in use, wait, when all is free again.

local SLOT = 4294967295

local function ringPlan(v)
  return {per = v[1], width = v[2], buckets = v[3], count = v[4], size = v[3] + 1}
end

local function slot(p, t) return t - t % p.width end

local function index(p, start) return start / p.width % p.size end

local function word(s, i) return (struct.unpack('<I4', s.ring, 4 * i + 1)) end

local function stale(p, s, start) return min(p.size, (start - s.at) / p.width) end

local function clearRing(p, t) return slot(p, t) + p.size * p.width end

local function peekRing(p, s, now, cost)
  now = max(now, s.at)
  if not s.ring then return cost <= p.count, 0, 0, 0 end
  local start = max(slot(p, now), s.at)
  local gone = stale(p, s, start)
  local used, free = s.a, 0
  if gone > p.buckets then
    used = 0
  else
    for j = 1, gone do used = used - word(s, index(p, s.at + j * p.width)) end
  end
  if used > 0 then
    local k = s.at
    while k > s.at - p.size * p.width and word(s, index(p, k)) == 0 do k = k - p.width end
    free = clearRing(p, k)
  end
  if cost == 0 then return true, used, 0, free end
  if cost > p.count then return false, used, 0, free end
  local over = used - (p.count - cost)
  if over <= 0 then return true, used, 0, free end
  for k = max(0, start - p.buckets * p.width), s.at, p.width do
    over = over - word(s, index(p, k))
    if over <= 0 then return false, used, clearRing(p, k) - now, free end
  end
  return false, used, 0, free
end

local function splice(ring, i, words)
  return sub(ring, 1, 4 * i) .. words .. sub(ring, 4 * i + #words + 1)
end

-- forward empties the buckets between the newest and the one that starts at start.
local function forward(p, s, start)
  local gone = stale(p, s, start)
  if gone == p.size then
    s.ring, s.a = string.rep('\0', 4 * p.size), 0
  elseif gone > 0 then
    local first = index(p, s.at + p.width)
    for j = 0, gone - 1 do s.a = s.a - word(s, (first + j) % p.size) end
    local n = min(gone, p.size - first)
    s.ring = splice(s.ring, first, string.rep('\0', 4 * n))
    if n < gone then s.ring = splice(s.ring, 0, string.rep('\0', 4 * (gone - n))) end
  end
  s.at = start
end

local function addRing(p, s, now, stamp, units)
  if not s.ring then s.ring = string.rep('\0', 4 * p.size) end
  local i, have = index(p, slot(p, stamp)), 0
  if slot(p, stamp) <= s.at then have = word(s, i) end
  if units < 0 then units = max(units, -have) else units = min(units, SLOT - have) end
  if units == 0 then return 0 end
  forward(p, s, max(slot(p, now), s.at))
  s.ring = splice(s.ring, i, struct.pack('<I4', have + units))
  s.a, s.dirty = s.a + units, true
  return max(units, -units)
end

local function takeRing(p, s, now, cost)
  now = max(now, s.at)
  local ok, used, wait, free = peekRing(p, s, now, cost)
  if ok and cost > 0 then
    addRing(p, s, now, now, cost)
    used, free = used + cost, clearRing(p, now)
  end
  return ok, used, wait, free
end

local function chargeRing(p, s, now, units, stamp)
  if clearRing(p, stamp) <= now then return 0 end
  return addRing(p, s, now, stamp, units)
end

local function refundRing(p, s, now, units, from)
  now = max(now, s.at)
  if clearRing(p, from) <= now then return 0 end
  return addRing(p, s, now, from, -units)
end

reset.r = function(p, s, now)
  local _, _, _, free = peekRing(p, s, now, 0)
  return free - now
end
