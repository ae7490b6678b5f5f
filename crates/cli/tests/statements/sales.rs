//! A database of the page engine that tests make and use: two data files and a log.

pub(crate) const MAKE: &str = "
CREATE DATABASE Sales
ON (NAME = Sales_1, FILENAME = 'D:\\sales_1.mdf', SIZE = 2MB, FILEGROWTH = 1MB),
   (NAME = Sales_2, FILENAME = 'D:\\sales_2.ndf', SIZE = 2MB)
LOG ON (NAME = Sales_log, FILENAME = 'D:\\sales_log.ldf', SIZE = 8MB)
GO
USE Sales
GO
CREATE TABLE orders(id INTEGER PRIMARY KEY, body TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
INSERT INTO orders SELECT i, hex(randomblob(50)) FROM n
GO
";
