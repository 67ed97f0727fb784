// Luxon's global build has been evaluated: what scripts see of it, in the time zone of the workflow.
;(kit) => {
  const { DateTime, Duration, Interval, Settings, IANAZone } = kit.libraries.luxon
  // Luxon asks for the offset with each date: one question instead of a formatted date that is read again.
  const QUARTER_MS = 900_000
  const offsets = new Map()
  IANAZone.prototype.offset = function (time) {
    if (!this.isValid || Number.isNaN(time)) return Number.NaN
    // Offsets change at full quarters of an hour only.
    const quarter = Math.floor(time / QUARTER_MS)
    const key = `${this.name} ${quarter}`
    let offset = offsets.get(key)
    if (offset === undefined) {
      offset = kit.host('offset', [this.name, quarter * QUARTER_MS])
      if (offsets.size > 10_000) offsets.clear()
      offsets.set(key, offset)
    }
    return offset
  }
  // The values of the bindings come after the library.
  let isSet = false
  const inZone = (value) => {
    if (isSet) return value
    isSet = true
    const zone = kit.roots.execution?.timezone
    if (typeof zone === 'string') Settings.defaultZone = zone
    return value
  }
  kit.read('DateTime', () => inZone(DateTime))
  kit.read('Duration', () => inZone(Duration))
  kit.read('Interval', () => inZone(Interval))
}
