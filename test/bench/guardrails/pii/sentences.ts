import { allFakers, type Faker } from '@faker-js/faker'
import type { PersonalKind } from '../../../../db/detection/pii/kinds.ts'
import type { Draw } from './random.ts'

/** A text with what a detector should find in it. */
export type Labelled = { text: string; spans: { kind: string; start: number; end: number }[]; source: string }

const LOCALES = [
  'en_US',
  'en_GB',
  'en_AU',
  'en_CA',
  'de',
  'de_CH',
  'fr',
  'fr_BE',
  'it',
  'es',
  'es_MX',
  'nl',
  'pt_BR',
  'pt_PT',
  'sv',
  'nb_NO',
  'da',
  'fi',
  'pl',
  'cs_CZ',
  'ja',
  'tr',
  'ro',
  'hu',
] as const

/** Sentences, in which `{email}` and the like stand for values. They are not those that the detectors were made with. */
const SENTENCES: string[] = [
  'Please send the contract to {email} before Friday.',
  '{name} <{email}> wrote on Monday:',
  'to: {email}; cc: {email}',
  '{"customer": {"mail": "{email}", "phone": "{phone}"}}',
  'name,email,phone\n{name},{email},{phone}',
  'My telephone number is {phone}, I am at home after six.',
  'Call {phone} and ask for {name}.',
  'Tel: {phone}\nFax: {phone}\nE-mail: {email}',
  'You can text me at {phone} any time.',
  'mobile={phone}&lang=en',
  '{name}, {phone}, moved out last year',
  'We tried to reach {name} on {phone} but nobody picked up.',
  'WhatsApp {phone}',
  'Contact: {name} ({phone})',
  'Her new cell is {phone}.',
  'Payment with card {card} was declined.',
  'Card number: {card}, expires 11/29',
  '{"pan":"{card}","amount":1250}',
  'visa {card} for {name}',
  'The number on the front is {card} and it does not work.',
  'SSN {ssn}',
  'Social security number: {ssn}, born 12/03/1984',
  'Applicant {name}, {ssn}, was approved.',
  '"ssn": "{ssn}"',
  'login from {ip} at 13:06',
  '{ip} - - [21/Nov/2026:13:06:02 +0000] "GET / HTTP/1.1" 200 512',
  'The server {ip} does not answer on port 443.',
  'connect to {ip}:8080 failed',
  'Blocked {ipv6} after five tries',
  'allow {cidr} only',
  'listening on [{ipv6}]:443',
  'IBAN {iban}',
  'Please transfer the money to {iban} until tomorrow.',
  'Konto: {iban}, Verwendungszweck: Miete',
]

/** Texts with numbers that are nothing of this kind. */
const NONE: string[] = [
  'Order {order} of {date} has {count} items for {price} EUR.',
  'Invoice no. {long} is due on {date}.',
  'Tracking number {long}, parcel {count} of 3',
  'Version {count}.{count}.{count}.{count} of the driver was installed.',
  'nginx/1.{count}.0 (build {long})',
  'The meeting is on {date} at {time}, room {count}.',
  'MAC 00:1B:44:11:3A:B7 and 12:34:56 later',
  'coordinates 52.{long}, 13.{long}',
  'ISBN 978-3-16-148410-0, page {count}',
  'The population is 3 769 495, {count} more than before.',
  'user @{handle} replied, see #{order}',
  'pip install package=={count}.4.{count}',
  'npm i left@1.{count}.3 right@latest',
  'timestamp 17637303621{count} ms, offset {long}',
  'Part 123-45-6789 is out of stock.',
  'The score was 3-2, then 21-19-21.',
  'std::vector<int> a; foo::bar(b); 10:20:30',
  'ratio 16:9, size 1920x1080, dpi 300',
  'uuid {uuid} in row {long}',
  'git@git.a.example:team/project.git is the remote',
  'Section 4.2.1.7 says the opposite of 4.2.1.6.',
  'account id {long}, plan 3, seats {count}',
  'From 2019-2024 the sum was 1.234.567,89.',
  'The card with the number 1234567812345678 is a sample that fails.',
]

/** Sentences with values that @faker-js/faker makes for many places of the world, and as many without any. */
export function makeSentences(d: Draw, count: number): Labelled[] {
  const fakers = LOCALES.map((locale) => allFakers[locale])
  for (const [at, faker] of fakers.entries()) faker.seed(1_000 + at)
  return Array.from({ length: count }, (_, at) => {
    const pattern = at % 3 === 2 ? d.pick(NONE) : SENTENCES[at % SENTENCES.length]!
    return fill(pattern, d.pick(fakers), d)
  })
}

function fill(pattern: string, faker: Faker, d: Draw): Labelled {
  const made: Labelled = { text: '', spans: [], source: 'faker' }
  for (const part of pattern.split(/(\{[a-z0-9]+\})/)) {
    const [kind, value] = /^\{[a-z0-9]+\}$/.test(part) ? make(part.slice(1, -1), faker, d) : [undefined, part]
    const start = made.text.length
    made.text += value
    if (kind) made.spans.push({ kind, start, end: made.text.length })
  }
  return made
}

function make(what: string, faker: Faker, d: Draw): [PersonalKind | undefined, string] {
  const english = allFakers.en_US
  switch (what) {
    case 'email':
      return ['email', faker.internet.email()]
    case 'phone':
      return ['phone', faker.phone.number({ style: d.pick(['human', 'national', 'international'] as const) })]
    case 'card': {
      const number = english.finance.creditCardNumber(
        d.pick(['visa', 'mastercard', 'american_express', 'discover', 'jcb', 'diners_club']),
      )
      return ['credit_card', d.below(2) === 0 ? number : number.replace(/\D/g, '')]
    }
    case 'ssn':
      return [
        'ssn',
        `${d.pick(['1', '2', '3', '4', '5', '7', '8'])}${d.digits(1)}${1 + d.below(9)}-${1 + d.below(9)}${d.digits(1)}-${1 + d.below(9)}${d.digits(3)}`,
      ]
    case 'ip':
      return ['ip_address', `${1 + d.below(99)}.${d.below(256)}.${d.below(256)}.${1 + d.below(254)}`]
    case 'cidr':
      return ['ip_address', `10.${d.below(256)}.${d.below(256)}.0/24`]
    case 'ipv6':
      return [
        'ip_address',
        d.below(2) ? english.internet.ipv6() : `2a02:${d.hex(3)}:${d.hex(4)}::${d.hex(2)}`,
      ]
    case 'iban':
      return ['iban', english.finance.iban({ formatted: d.below(2) === 0 })]
    case 'name':
      return [undefined, faker.person.fullName()]
    default:
      return [undefined, makeOther(what, d)]
  }
}

function makeOther(what: string, d: Draw): string {
  if (what === 'order') return `A-${d.digits(7)}`
  if (what === 'date') return d.pick(['2026-11-21', '21.11.2026', '11/21/2026', '2026/11/21'])
  if (what === 'time') return '13:06:02'
  if (what === 'price') return `${d.digits(3)}.${d.digits(2)}`
  if (what === 'long') return d.digits(6 + d.below(7))
  if (what === 'handle') return d.lower(8)
  if (what === 'uuid') return d.uuid()
  return String(1 + d.below(90))
}
