import { listAllowedHosts } from '../authorize.ts'
import { askWith, findBase } from './ask.ts'
import type { CredentialCheck } from './check.ts'

/** Slack's auth.test: its errors come with the status 200. */
export const checkSlack: CredentialCheck = async (credential, tools) => {
  const url = `${findBase(credential, 'https://slack.com/api')}/auth.test`
  const answer = await askWith(credential, tools, { url, method: 'POST' })
  if (answer?.ok !== true) throw new Error(`Slack refuses it: ${readText(answer?.error) ?? 'no reason'}`)
  return `Signed in as ${readText(answer.user) ?? 'a bot'}${describeIn(answer.team)}`
}

/** Telegram's getMe. The token is a part of the path there. */
export const checkTelegram: CredentialCheck = async (credential, tools) => {
  const base = findBase(credential, 'https://api.telegram.org')
  const url = `${base}/bot${encodeURIComponent(String(credential.data.botToken)).replaceAll('%3A', ':')}/getMe`
  const answer = await askWith(credential, tools, { url, allowedHosts: listAllowedHosts(credential) })
  const { username } = Object(answer?.result)
  if (answer?.ok !== true)
    throw new Error(`Telegram refuses it: ${readText(answer?.description) ?? 'no reason'}`)
  return `Signed in as ${readText(username) ?? 'a bot'}`
}

export const checkDiscord: CredentialCheck = async (credential, tools) => {
  const url = `${findBase(credential, 'https://discord.com/api/v10')}/users/@me`
  const answer = await askWith(credential, tools, { url })
  return `Signed in as ${readText(answer?.username) ?? 'a bot'}`
}

/** A webhook tells its name to a GET, and sends nothing. */
export const checkDiscordWebhook: CredentialCheck = async (credential, tools) => {
  const url = String(credential.data.webhookUrl).replace(/[?#].*$/s, '')
  const answer = await askWith(credential, tools, { url, allowedHosts: listAllowedHosts(credential) })
  return `It is the webhook ${readText(answer?.name) ?? 'of a channel'}`
}

export const checkMattermost: CredentialCheck = async (credential, tools) => {
  const url = `${findBase(credential, '')}/api/v4/users/me`
  const answer = await askWith(credential, tools, { url })
  return `Signed in as ${readText(answer?.username) ?? 'a user'}`
}

export const checkWhatsApp: CredentialCheck = async (credential, tools) => {
  const url = `${findBase(credential, 'https://graph.facebook.com/v23.0')}/me`
  const answer = await askWith(credential, tools, { url })
  return `Signed in as ${readText(answer?.name) ?? 'an account'}`
}

export const checkTwilio: CredentialCheck = async (credential, tools) => {
  const base = findBase(credential, 'https://api.twilio.com/2010-04-01')
  const url = `${base}/Accounts/${encodeURIComponent(String(credential.data.accountSid))}.json`
  const answer = await askWith(credential, tools, { url })
  return `Signed in as ${readText(answer?.friendly_name) ?? 'an account'}`
}

function describeIn(team: unknown): string {
  const name = readText(team)
  return name === undefined ? '' : ` in ${name}`
}

/** The beginning of a text that a server has sent; undefined if the value is not a text. */
export function readText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value.slice(0, 200) : undefined
}
