import mysql, { type FieldPacket } from 'mysql2'
import { readJsonColumn, readNumber, readTime } from './values.ts'

const { Types } = mysql

/** Lists and objects are JSON, as there are no arrays. */
export function writeMysqlParam(value: unknown): unknown {
  if (typeof value === 'object' && value !== null) return JSON.stringify(value)
  // As digits: a number would be sent as a fraction, which a LIMIT does not take.
  return typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : value
}

const MAX_BIT_BYTES = 8

const NAMES: Record<number, string> = Object.fromEntries(
  Object.entries(Types).flatMap(([name, code]) =>
    typeof code === 'number' ? [[code, name.toLowerCase()]] : [],
  ),
)

export function nameMysqlType({ columnType = -1 }: FieldPacket): string {
  return NAMES[columnType] ?? 'text'
}

export function readMysqlValue(field: FieldPacket, value: unknown): unknown {
  const { columnType } = field
  if (value === null || value === undefined) return null
  if (Buffer.isBuffer(value)) {
    if (columnType === Types.BIT && value.length <= MAX_BIT_BYTES)
      return readNumber(BigInt(`0x${value.toString('hex') || '0'}`).toString())
    return value.toString('base64')
  }
  if (typeof value !== 'string') {
    if (typeof value === 'number' && !Number.isFinite(value)) return String(value)
    return typeof value === 'bigint' ? readNumber(value.toString()) : value
  }
  if (columnType === Types.NEWDECIMAL || columnType === Types.DECIMAL) return readNumber(value)
  if (columnType === Types.TIMESTAMP) return readTime(value, 'Z')
  if (columnType === Types.DATETIME) return readTime(value, '')
  if (columnType === Types.JSON) return readJsonColumn(value)
  return value
}
