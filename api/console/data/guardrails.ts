import { useQuery } from '@tanstack/react-query'
import { api, keepRows, queries, read } from './client.ts'

const { guardrails } = api.api
const { rules } = guardrails

type Asked = Parameters<typeof guardrails.check.$post>[0]['json']

/** Checks a text; nothing is stored. */
export async function checkText(teamId: string, json: Asked) {
  return read(guardrails.check.$post({ query: { teamId }, json }))
}

export type Checked = Awaited<ReturnType<typeof checkText>>
export type Violation = Checked['violations'][number]

async function listRules(teamId: string, page: number) {
  return read(rules.$get({ query: { teamId, page: String(page) } }))
}

export type Rule = Awaited<ReturnType<typeof listRules>>['content'][number]

export function useRules(teamId: string, page: number) {
  return useQuery({
    queryKey: ['guardrails', teamId, 'rules', page],
    queryFn: () => listRules(teamId, page),
    enabled: teamId !== '',
    ...keepRows,
  })
}

type NewRule = Parameters<typeof rules.$post>[0]['json']

export async function createRule(teamId: string, json: NewRule) {
  return refresh(read(rules.$post({ query: { teamId }, json })))
}

export async function updateRule(id: string, json: Parameters<(typeof rules)[':id']['$put']>[0]['json']) {
  return refresh(read(rules[':id'].$put({ param: { id }, json })))
}

export async function deleteRule(id: string) {
  return refresh(read(rules[':id'].$delete({ param: { id } })))
}

type Trial = Parameters<typeof rules.test.$post>[0]['json']

/** Applies a rule, stored or not, to samples. */
export async function tryRule(teamId: string, json: Trial) {
  return (await read(rules.test.$post({ query: { teamId }, json }))).results
}

export type Tried = Awaited<ReturnType<typeof tryRule>>[number]

async function refresh<T>(work: Promise<T>): Promise<T> {
  const done = await work
  await queries.invalidateQueries({ queryKey: ['guardrails'] })
  return done
}
