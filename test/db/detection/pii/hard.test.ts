import { expect, test } from 'vitest'
import { CHECKED_KINDS } from '../../../../db/detection/pii/kinds.ts'
import { findPii } from '../../../../db/detection/pii/pii.ts'

/** A text, and what is found in it: the kind and the place's text, or only the kind, or nothing. */
const CASES: [text: string, found: string][] = [
  ['Connect to 81.2.69.142:8080 now', 'ip_address:81.2.69.142'],
  ['Upgrade to version 1.2.3.4 of the driver', ''],
  ['nginx/1.25.3.1 started', ''],
  ['Release 10.0.19041.1 of Windows', ''],
  ['The host 10.1.2.3 is down', 'ip_address:10.1.2.3'],
  ['http://192.168.1.10/admin', 'ip_address:192.168.1.10'],
  ['[2001:db8:85a3::8a2e:370:7334]:443', 'ip_address:2001:db8:85a3::8a2e:370:7334'],
  ['fe80::1ff:fe23:4567:890a%eth0', 'ip_address:fe80::1ff:fe23:4567:890a%eth0'],
  ['std::vector<int>::iterator', ''],
  ['at 12:34:56 on 2026-11-23', ''],
  ['MAC 00:1B:44:11:3A:B7', ''],
  ['Order 4539578763621486 was shipped', 'credit_card'],
  ['order number 1234567812345670', ''],
  ['tracking number 9400110898825022579493', ''],
  ['IMEI 490154203237518', ''],
  ['Card: 5500-0000-0000-0004 exp 12/27', 'credit_card:5500-0000-0000-0004'],
  ['amex 3782 822463 10005', 'credit_card:3782 822463 10005'],
  ['card ending in 1234', ''],
  ['4111111111111112', ''],
  ['0000 0000 0000 0000', ''],
  ['6011000990139424', 'credit_card:6011000990139424'],
  ['SSN: 536-90-4399', 'ssn:536-90-4399'],
  ['social security number 536904399', 'ssn:536904399'],
  ['ssn 000-12-3456', ''],
  ['666-12-3456', ''],
  ['part no. 123-45-6789', ''],
  ['my ssn is 123 45 6780', 'ssn:123 45 6780'],
  ['ada@example.com', 'email:ada@example.com'],
  ['Ada <ada.byron+news@sub.example.co.uk>,', 'email:ada.byron+news@sub.example.co.uk'],
  ['mailto:ada@example.com?subject=x', 'email:ada@example.com'],
  ['"ada lovelace"@example.com', 'email'],
  ['jörg@exämple.de', 'email:jörg@exämple.de'],
  ['git@github.com:a/b.git', ''],
  ['user@localhost', ''],
  ['npm i react@18.2.0', ''],
  ['@ada on Twitter', ''],
  ['ada@@example.com', ''],
  ['ada@example', ''],
  ["o'brien@example.ie", "email:o'brien@example.ie"],
  // phones of 20 countries
  ['Call (415) 555-2671', 'phone:(415) 555-2671'],
  ['+1-415-555-2671', 'phone:+1-415-555-2671'],
  ['415.555.2671', 'phone:415.555.2671'],
  ['+44 20 7946 0958', 'phone:+44 20 7946 0958'],
  ['020 7946 0958', 'phone:020 7946 0958'],
  ['07911 123456', 'phone:07911 123456'],
  ['+49 (0)30 901820', 'phone'],
  ['030 901820 tel', 'phone:030 901820'],
  ['+33 6 12 34 56 78', 'phone:+33 6 12 34 56 78'],
  ['06 12 34 56 78', 'phone:06 12 34 56 78'],
  ['+39 06 6982', 'phone'],
  ['+34 612 34 56 78', 'phone:+34 612 34 56 78'],
  ['tel: 612 345 678', 'phone:612 345 678'],
  ['+31 6 12345678', 'phone:+31 6 12345678'],
  ['+32 470 12 34 56', 'phone:+32 470 12 34 56'],
  ['+41 44 668 18 00', 'phone:+41 44 668 18 00'],
  ['+43 1 58858', 'phone'],
  ['+46 8 123 456 78', 'phone:+46 8 123 456 78'],
  ['+47 22 12 34 56', 'phone:+47 22 12 34 56'],
  ['+45 32 12 34 56', 'phone:+45 32 12 34 56'],
  ['+358 40 1234567', 'phone:+358 40 1234567'],
  ['+48 512 345 678', 'phone:+48 512 345 678'],
  ['+420 601 123 456', 'phone:+420 601 123 456'],
  ['+351 912 345 678', 'phone:+351 912 345 678'],
  ['+30 21 0123 4567', 'phone:+30 21 0123 4567'],
  ['+90 532 123 45 67', 'phone:+90 532 123 45 67'],
  ['+972 54-123-4567', 'phone:+972 54-123-4567'],
  ['+91 98765 43210', 'phone:+91 98765 43210'],
  ['+86 138 0013 8000', 'phone:+86 138 0013 8000'],
  ['+81 90-1234-5678', 'phone:+81 90-1234-5678'],
  ['+82 10-1234-5678', 'phone:+82 10-1234-5678'],
  ['+61 412 345 678', 'phone:+61 412 345 678'],
  ['+55 11 91234-5678', 'phone:+55 11 91234-5678'],
  ['+52 55 1234 5678', 'phone:+52 55 1234 5678'],
  ['+27 82 123 4567', 'phone:+27 82 123 4567'],
  ['+234 803 123 4567', 'phone:+234 803 123 4567'],
  ['+7 912 345-67-89', 'phone:+7 912 345-67-89'],
  ['+380 44 123 4567', 'phone:+380 44 123 4567'],
  ['+65 6123 4567', 'phone:+65 6123 4567'],
  ['On 2026-11-23 we sold 1234567 units', ''],
  ['ISBN 978-3-16-148410-0', ''],
  ['between 1914 and 1918', ''],
  ['pi is 3.14159265358979', ''],
  ['lat 52.520008, lon 13.404954', ''],
  ['1,234,567.89 EUR', ''],
  ['room 101-102-1033', ''],
  ['timestamp 1700000000', ''],
  ['UUID 123e4567-e89b-12d3-a456-426614174000', ''],
  ['invoice 2023-0001234', ''],
  ['192-168-100-1', ''],
  ['ZIP 12345-6789', ''],
  ['score 100-200-3000', ''],
  ['my number is 555-0142', 'phone'],
  ['SKU 555-123-4567', ''],
  // jwt
  [
    'https://a.example/cb?token=eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U&x=1',
    'jwt:eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U',
  ],
  ['Authorization: Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.', 'jwt'],
  ['one.two.three', ''],
]

const ALL = new Set(CHECKED_KINDS)

test.each(CASES)('%s', (text, wanted) => {
  const found = findPii(text, ALL)
  expect(
    found
      .map(({ kind, start, end }) => (wanted.includes(':') ? `${kind}:${text.slice(start, end)}` : kind))
      .join(' | '),
  ).toBe(wanted)
})

test.each([
  'postgres://ada:s3cr3tPw9x@10.2.3.4:5432/x',
  'redis://:Zk3jf8Qw9xLm@cache.internal:6379',
  'mongodb+srv://app:hunter2@cluster0.mongodb.net',
])('the password of a URL is found, also one that people type: %s', (text) => {
  expect(findPii(text, ALL).map(({ kind }) => kind)).toContain('api_key')
})

test.each([
  'postgres://user:password@localhost/db',
  'mysql://root:$' + '{DB_PASS1}@db',
  'https://user:{{pass1}}@host.io',
  'redis://:changeme1@x',
  'http://localhost:3000@x',
  'https://medium.com:443/@ada',
  'postgres://app:hunter2@db.a.example/x',
  'postgres://ada:s3cr3tPw9x@db.example.com/x',
  'ssh://git:22@host',
])('what stands for a password is none: %s', (text) => {
  expect(findPii(text, ALL)).toEqual([])
})
