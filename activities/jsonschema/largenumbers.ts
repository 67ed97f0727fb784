import { value as readValue } from '@hyperjump/browser'
import { addKeyword } from '@hyperjump/json-schema/experimental'
import * as Instance from '@hyperjump/json-schema/instance/experimental'
import { isLargeNumber, isLargeOf } from '../../workflows/jsonschema/largeinteger.ts'

type Node = Parameters<typeof Instance.typeOf>[0]

const COMPARED: Record<string, (value: number, limit: number) => boolean> = {
  minimum: (value, limit) => value >= limit,
  maximum: (value, limit) => value <= limit,
  exclusiveMinimum: (value, limit) => value > limit,
  exclusiveMaximum: (value, limit) => value < limit,
}

/** Sets keywords in place of the library's: theirs take the digits of a number that is too large for a text only. */
export function useLargeNumbers(): void {
  add<string | string[]>('type', (types, instance) =>
    [types].flat().some((type) => {
      if (type === 'integer' && Instance.typeOf(instance) === 'number')
        return Number.isInteger(Instance.value<number>(instance))
      return Instance.typeOf(instance) === type || isLargeOf(type, Instance.value(instance))
    }),
  )
  for (const [name, fits] of Object.entries(COMPARED))
    add<number>(name, (limit, instance) => {
      const value = Instance.value(instance)
      const isNumber = Instance.typeOf(instance) === 'number' || isLargeNumber(value)
      return !isNumber || fits(Number(value), limit)
    })
}

function add<T>(name: string, interpret: (given: T, instance: Node) => boolean): void {
  addKeyword({
    id: `https://json-schema.org/keyword/${name}`,
    // biome-ignore lint/suspicious/noExplicitAny: the library's types leave out what its own keywords use
    compile: async (schema: any) => readValue(schema) as T,
    interpret,
  } as unknown as Parameters<typeof addKeyword>[0])
}
