import { api, keepRows, read } from '../data/client.ts'
import { resource } from '../data/resource.ts'

const { useRead, write } = resource('guardrails')

const { guardrails } = api.api
const { rules, exemplars, settings } = guardrails

type CheckedText = Parameters<typeof guardrails.check.$post>[0]['json']

/** Checks a text; nothing is stored. */
export async function checkText(teamId: string, json: CheckedText) {
  return read(guardrails.check.$post({ query: { teamId }, json }))
}

export type Checked = Awaited<ReturnType<typeof checkText>>
export type Violation = Checked['violations'][number]

async function listRules(teamId: string, page: number) {
  return read(rules.$get({ query: { teamId, page: String(page) } }))
}

export type Rule = Awaited<ReturnType<typeof listRules>>['content'][number]

export function useRules(teamId: string, page: number) {
  return useRead([teamId, 'rules', page], () => listRules(teamId, page), keepRows)
}

type NewRule = Parameters<typeof rules.$post>[0]['json']

export async function createRule(teamId: string, json: NewRule) {
  return write(read(rules.$post({ query: { teamId }, json })))
}

export async function updateRule(id: string, json: Parameters<(typeof rules)[':id']['$put']>[0]['json']) {
  return write(read(rules[':id'].$put({ param: { id }, json })))
}

export async function deleteRule(id: string) {
  return write(read(rules[':id'].$delete({ param: { id } })))
}

type Trial = Parameters<typeof rules.test.$post>[0]['json']

/** Applies a rule, stored or not, to samples. */
export async function tryRule(teamId: string, json: Trial) {
  return (await read(rules.test.$post({ query: { teamId }, json }))).results
}

export type Tried = Awaited<ReturnType<typeof tryRule>>[number]

export const CATEGORIES = [
  'extraction',
  'hijack',
  'role_change',
  'authority',
  'exfiltration',
  'social_pressure',
  'data_poisoning',
  'other',
] as const

async function listExemplars(teamId: string, page: number) {
  return read(exemplars.$get({ query: { teamId, page: String(page) } }))
}

export type Exemplar = Awaited<ReturnType<typeof listExemplars>>['content'][number]

/** The texts of the team whose meaning is looked for. */
export function useExemplars(teamId: string, page: number) {
  return useRead([teamId, 'exemplars', page], () => listExemplars(teamId, page), keepRows)
}

type NewExemplar = Parameters<typeof exemplars.$post>[0]['json']

export async function saveExemplar(teamId: string, id: string | undefined, json: NewExemplar) {
  if (id === undefined) return write(read(exemplars.$post({ query: { teamId }, json })))
  return write(read(exemplars[':id'].$put({ param: { id }, json })))
}

export async function deleteExemplar(id: string) {
  return write(read(exemplars[':id'].$delete({ param: { id } })))
}

async function readSettings(teamId: string) {
  return read(settings.$get({ query: { teamId } }))
}

export type GuardrailSettings = Awaited<ReturnType<typeof readSettings>>

/** The model that helps the team's checks, and what it has cost this month. */
export function useGuardrailSettings(teamId: string) {
  return useRead([teamId, 'settings'], () => readSettings(teamId))
}

type NewSettings = Parameters<typeof settings.$put>[0]['json']

export async function updateGuardrailSettings(teamId: string, json: NewSettings) {
  return write(read(settings.$put({ query: { teamId }, json })))
}
