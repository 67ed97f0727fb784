import { value as readValue } from '@hyperjump/browser'
import { addKeyword } from '@hyperjump/json-schema/experimental'
import * as Instance from '@hyperjump/json-schema/instance/experimental'

/** Whether a number is a multiple of another one, as their decimals are written: 0.3 is one of 0.1, 1.00000001 none of 1. */
function isMultiple(value: number, of: number): boolean {
  // The value is so large that its digits are lost: any number may have been written.
  if (!Number.isFinite(value)) return false
  const [a, b] = [readDecimal(value), readDecimal(of)]
  if (b.digits === 0n) return false
  const least = Math.min(a.power, b.power)
  const lift = (decimal: Decimal) => decimal.digits * 10n ** BigInt(decimal.power - least)
  return lift(a) % lift(b) === 0n
}

/** `digits` times ten to the `power`. */
type Decimal = { digits: bigint; power: number }

function readDecimal(value: number): Decimal {
  const [mantissa = '0', power = '0'] = String(value).split('e')
  const [whole = '0', part = ''] = mantissa.split('.')
  return { digits: BigInt(whole + part), power: Number(power) - part.length }
}

/** Sets the keyword in place of the library's, which takes what is off by a ten millionth for a multiple. */
export function useExactMultiples(): void {
  addKeyword({
    id: 'https://json-schema.org/keyword/multipleOf',
    // biome-ignore lint/suspicious/noExplicitAny: the library's types leave out what its own keywords use
    compile: async (schema: any) => readValue(schema) as number,
    interpret: (of: number, instance: Parameters<typeof Instance.typeOf>[0]) =>
      Instance.typeOf(instance) !== 'number' || isMultiple(Instance.value<number>(instance), of),
  } as unknown as Parameters<typeof addKeyword>[0])
}
